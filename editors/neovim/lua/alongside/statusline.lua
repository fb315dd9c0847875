--- What a statusline shows: how many changes wait, and for which agents.
local M = {}

function M.text()
  local bridge = require('alongside.bridge')
  if not bridge.welcome then
    return ''
  end
  local waiting = #require('alongside.reviews').waiting()
  if waiting > 0 then
    return waiting == 1 and '1 change to review' or waiting .. ' changes to review'
  end
  local names = vim.tbl_map(function(agent)
    return (agent.name:gsub('%%', '%%%%'))
  end, bridge.agents)
  return table.concat(names, ', ')
end

--- Redraws, and tells everybody who wants to know (`User AlongsideChanged`).
function M.changed()
  if vim.v.exiting == vim.NIL then
    vim.cmd.redrawstatus({ bang = true })
    vim.api.nvim_exec_autocmds('User', { pattern = 'AlongsideChanged', modeline = false })
  end
end

return M
