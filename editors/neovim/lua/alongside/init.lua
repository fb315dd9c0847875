--- Terminal coding agents alongside Neovim: the public functions. `:help alongside` is the manual.
local M = {}

---@class alongside.Keys
---@field accept_hunk? string
---@field reject_hunk? string
---@field accept? string
---@field reject? string
---@field review? string global: opens a pending change, in every mode but on the command line

--- What `setup` and `vim.g.alongside` accept; everything is optional.
---@class alongside.Config
---@field command? string the `alongside` program
---@field autostart? boolean start with Neovim (default: true)
---@field workspace? string[]|fun(): string[] workspace folders (default: the repository around the current directory)
---@field open? alongside.Open how a pending change appears (default: auto)
---@field keys? alongside.Keys|false keys; false for none

---@class alongside.Options: alongside.Config
---@field command string

---@type alongside.Config
local defaults = {
  autostart = true,
  open = 'auto',
  keys = {
    review = '<F8>',
    accept_hunk = '<LocalLeader>a',
    reject_hunk = '<LocalLeader>r',
    accept = '<LocalLeader>A',
    reject = '<LocalLeader>R',
  },
}

--- The program that installed this plugin; if it was moved, the one on the PATH.
---@return string
local function program()
  local root = vim.fn.fnamemodify(assert(debug.getinfo(1, 'S')).source:sub(2), ':p:h:h:h')
  local ok, installed = pcall(function()
    return vim.json.decode(table.concat(vim.fn.readfile(root .. '/.alongside-installed.json'), '\n'))
  end)
  local found = ok and type(installed.program) == 'string' and vim.fn.executable(installed.program) == 1
  return found and installed.program or 'alongside'
end

--- The active options: `vim.g.alongside` over the defaults.
---@return alongside.Options
function M.options()
  local options = vim.tbl_deep_extend('force', defaults, vim.g.alongside or {})
  options.command = options.command or program()
  return options
end

--- Optional; the same as setting `vim.g.alongside`.
---@param options? alongside.Config
function M.setup(options)
  vim.g.alongside = vim.tbl_deep_extend('force', vim.g.alongside or {}, options or {})
end

---@param message string
---@param level? integer one of `vim.log.levels` (default: INFO)
function M.notify(message, level)
  vim.notify('alongside: ' .. message, level or vim.log.levels.INFO, { title = 'alongside' })
end

--- Starts the companion unless it is running.
function M.start()
  local bridge, context, reviews =
    require('alongside.bridge'), require('alongside.context'), require('alongside.reviews')
  reviews.listen()
  require('alongside.opening').start()
  bridge.start(function()
    context.start()
    reviews.refresh()
  end)
end

--- Stops the companion; pending changes are rejected.
function M.stop()
  require('alongside.context').stop()
  require('alongside.preview').close()
  require('alongside.bridge').stop()
end

--- For a statusline: `%{%v:lua.require'alongside'.statusline()%}`.
---@return string
function M.statusline()
  return require('alongside.statusline').text()
end

return M
