--- Terminal coding agents alongside Neovim. This module ties the others together; `:help alongside` is the manual.
local M = {}

local defaults = {
  -- The program.
  command = 'alongside',
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

--- The options in force: `vim.g.alongside` over the defaults.
function M.options()
  return vim.tbl_deep_extend('force', defaults, vim.g.alongside or {})
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
