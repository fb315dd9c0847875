--- Reloads buffers that an agent writes.
local M = {}

-- How long to look for the agent's write after a change was accepted.
local WRITE_TIMEOUT_MS = 10000

--- Reloads the buffer of a file once the agent has written it.
---@param path string
function M.watch(path)
  local buffer = vim.fn.bufnr('^' .. vim.fn.escape(path, '*?[]{}\\,~$^') .. '$')
  ---@diagnostic disable-next-line: undefined-field
  local watcher = buffer > 0 and vim.uv.new_fs_event()
  if not watcher then
    return
  end
  local function stop()
    if not watcher:is_closing() then
      watcher:close()
    end
  end
  watcher:start(
    vim.fs.dirname(path),
    {},
    vim.schedule_wrap(function()
      if vim.api.nvim_buf_is_valid(buffer) and not vim.bo[buffer].modified then
        vim.cmd.checktime(buffer)
      end
    end)
  )
  vim.defer_fn(stop, WRITE_TIMEOUT_MS)
end

return M
