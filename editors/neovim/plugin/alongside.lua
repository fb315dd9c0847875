-- Puts terminal coding agents alongside Neovim. See `:help alongside`.
if vim.g.loaded_alongside then
  return
end
vim.g.loaded_alongside = true

if vim.fn.has('nvim-0.10') == 0 then
  vim.notify('alongside requires Neovim 0.10 or newer', vim.log.levels.WARN)
  return
end

local function command(name, options, action)
  vim.api.nvim_create_user_command(name, action, options)
end

command('AlongsideStart', { desc = 'Start the companion' }, function()
  require('alongside').start()
end)
command('AlongsideStop', { desc = 'Stop the companion' }, function()
  require('alongside').stop()
end)
command('AlongsideReview', { nargs = '?', desc = 'Review a pending change' }, function(typed)
  require('alongside.reviews').choose(tonumber(typed.args) --[[@as integer?]])
end)
command('AlongsideAccept', { bang = true, desc = 'Accept the open change' }, function(typed)
  require('alongside.reviews').accept(nil, typed.bang)
end)
command('AlongsideReject', { nargs = '*', desc = 'Reject the open change' }, function(typed)
  require('alongside.reviews').reject(nil, typed.args ~= '' and typed.args or nil)
end)
command('AlongsideSend', { range = true, desc = "Send lines, or the file, to the agent's prompt" }, function(typed)
  if typed.range == 0 then
    require('alongside.context').send()
  else
    require('alongside.context').send(typed.line1, typed.line2)
  end
end)

-- Scheduled, so that a `setup` that follows in the user's configuration still applies.
local autostart = vim.schedule_wrap(function()
  if (vim.g.alongside or {}).autostart ~= false then
    require('alongside').start()
  end
end)

-- Not without a UI: headless scripts have no use for a companion.
if #vim.api.nvim_list_uis() > 0 and vim.v.vim_did_enter == 1 then
  -- Loaded late, by `:packadd` or a plugin manager.
  autostart()
else
  vim.api.nvim_create_autocmd('UIEnter', { once = true, callback = autostart })
end
