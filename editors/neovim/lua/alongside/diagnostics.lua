--- The errors and warnings that Neovim shows in a buffer, as the companion wants them.
local M = {}

-- Of one buffer, the most severe ones; the companion has the same limit.
local MAX_DIAGNOSTICS = 200

local SEVERITIES = {
  [vim.diagnostic.severity.ERROR] = 'error',
  [vim.diagnostic.severity.WARN] = 'warning',
  [vim.diagnostic.severity.INFO] = 'information',
  [vim.diagnostic.severity.HINT] = 'hint',
}

---@class alongside.Diagnostic
---@field start alongside.Position
---@field end alongside.Position
---@field severity string
---@field message string
---@field source? string
---@field code? string

---@param buffer integer
---@param line integer from 0
---@param column integer from 0, in bytes
---@return alongside.Position
local function position(buffer, line, column)
  -- A buffer that is not loaded has no lines.
  local text = vim.api.nvim_buf_get_lines(buffer, line, line + 1, false)[1]
  local character = text and vim.fn.strutf16len(text:sub(1, column)) or column
  return { line = line + 1, character = character + 1 }
end

---@param buffer integer
---@return alongside.Diagnostic[]
function M.of(buffer)
  local found = vim.diagnostic.get(buffer)
  if #found > MAX_DIAGNOSTICS then
    table.sort(found, function(one, other)
      return one.severity < other.severity
    end)
  end
  local diagnostics = {}
  for index = 1, math.min(#found, MAX_DIAGNOSTICS) do
    local one = found[index]
    diagnostics[index] = {
      start = position(buffer, one.lnum, one.col),
      ['end'] = position(buffer, one.end_lnum or one.lnum, one.end_col or one.col),
      severity = SEVERITIES[one.severity] or 'error',
      message = one.message,
      source = one.source,
      code = one.code and tostring(one.code),
    }
  end
  return diagnostics
end

return M
