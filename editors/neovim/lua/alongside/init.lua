--- Terminal coding agents alongside Neovim. This module ties the others together; `:help alongside` is the manual.
local M = {}

local defaults = {
  -- The program; see `program` below.
  command = nil,
  -- Start with Neovim.
  autostart = true,
  -- The folders of the workspace; a list, or a function that gives one. Otherwise the repository around the directory.
  workspace = nil,
  -- Keys in the window of a proposed change; false for none.
  keys = {
    accept_hunk = '<LocalLeader>a',
    reject_hunk = '<LocalLeader>r',
    accept = '<LocalLeader>A',
    reject = '<LocalLeader>R',
  },
}

--- The program: by its name where that is on the PATH, so that an update is found too; else where it was when it installed
--- this plugin.
local function program()
  if vim.fn.executable('alongside') == 1 then
    return 'alongside'
  end
  local root = vim.fn.fnamemodify(debug.getinfo(1, 'S').source:sub(2), ':p:h:h:h')
  local read, lines = pcall(vim.fn.readfile, root .. '/.alongside-installed.json')
  local decoded, list = pcall(vim.json.decode, read and table.concat(lines, '\n') or '')
  return decoded and type(list.program) == 'string' and list.program or 'alongside'
end

--- The options in force: `vim.g.alongside` over the defaults.
function M.options()
  local options = vim.tbl_deep_extend('force', defaults, vim.g.alongside or {})
  options.command = options.command or program()
  return options
end

--- For those who configure plugins by calling `setup`.
function M.setup(options)
  vim.g.alongside = vim.tbl_deep_extend('force', vim.g.alongside or {}, options or {})
end

function M.notify(message, level)
  vim.notify('alongside: ' .. message, level or vim.log.levels.INFO, { title = 'alongside' })
end

--- Starts the companion, unless it runs.
function M.start()
  local bridge, context, reviews = require('alongside.bridge'), require('alongside.context'), require('alongside.reviews')
  reviews.listen()
  bridge.start(function()
    context.start()
    reviews.refresh()
  end)
end

--- Ends the companion; agents that wait are told that nothing was accepted.
function M.stop()
  require('alongside.context').stop()
  require('alongside.bridge').stop()
end

--- For a statusline: `%{%v:lua.require'alongside'.statusline()%}`.
function M.statusline()
  return require('alongside.statusline').text()
end

return M
