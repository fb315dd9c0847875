--- `:checkhealth alongside`
local M = {}

-- The companion tries out each agent's lookup.
local DOCTOR_TIMEOUT_MS = 15000

function M.check()
  local health, bridge = vim.health, require('alongside.bridge')
  health.start('alongside')
  local command = require('alongside').options().command
  if vim.fn.executable(command) == 0 then
    health.error(
      '`' .. command .. '` is not executable',
      'Install alongside, or set vim.g.alongside = { command = … }'
    )
    return
  end
  health.ok(vim.trim(vim.fn.system({ command, '--version' })))
  if not bridge.welcome then
    health.warn('the companion is not running; run `:AlongsideStart`')
    if bridge.errors and bridge.errors ~= '' then
      health.info('Output: ' .. bridge.errors)
    end
    return
  end
  health.ok('the companion is running for ' .. table.concat(bridge.welcome.workspace, ', '))
  local report
  bridge.request('doctor', nil, function(error, result)
    report = result or { agents = { { displayName = 'doctor', connects = false, hint = error.message } } }
  end)
  vim.wait(DOCTOR_TIMEOUT_MS, function()
    return report ~= nil
  end, 20)
  for _, agent in ipairs(report and report.agents or {}) do
    local name = agent.displayName or 'an agent'
    if agent.connects then
      health.ok(name .. ' would connect')
    else
      health.warn(name .. ' would not connect', agent.hint)
    end
  end
  for _, agent in ipairs(bridge.agents) do
    health.info(bridge.agent_name(agent.name, agent.version) .. ' is connected')
  end
end

return M
