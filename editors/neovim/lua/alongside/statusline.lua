--- The number of pending changes, or the connected agents, for a statusline.
local M = {}

---@return string
function M.text()
  local bridge = require('alongside.bridge')
  if not bridge.welcome then
    return ''
  end
  local pending = #require('alongside.reviews').pending()
  if pending > 0 then
    return pending == 1 and '1 change to review' or pending .. ' changes to review'
  end
  local names = vim.tbl_map(function(agent)
    return (bridge.agent_name(agent.name, agent.version):gsub('%%', '%%%%'))
  end, bridge.agents)
  return table.concat(names, ', ')
end

--- Redraws, updates the notice and triggers `User AlongsideChanged`.
function M.changed()
  if vim.v.exiting == vim.NIL then
    require('alongside.notice').update()
    vim.cmd.redrawstatus({ bang = true })
    vim.api.nvim_exec_autocmds('User', { pattern = 'AlongsideChanged', modeline = false })
  end
end

return M
