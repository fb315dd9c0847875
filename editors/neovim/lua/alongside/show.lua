--- Shows files that an agent wants to show, without taking the focus.
local M = {}

-- The window that was opened for this; the next file is shown there too.
---@type integer?
local window

--- A window that may show another file: the one from before, unless the user went there.
---@return integer?
local function reusable()
  local is_reusable = window
    and vim.api.nvim_win_is_valid(window)
    and window ~= vim.api.nvim_get_current_win()
    and vim.api.nvim_win_get_tabpage(window) == vim.api.nvim_get_current_tabpage()
  return is_reusable and window or nil
end

---@param target { path: string, line?: integer }
function M.show(target)
  local buffer = vim.fn.bufadd(target.path)
  vim.fn.bufload(buffer)
  vim.bo[buffer].buflisted = true
  local place = vim.fn.bufwinid(buffer)
  if place < 0 then
    place = reusable() or -1
    if place < 0 then
      place = vim.api.nvim_open_win(buffer, false, { split = 'below', win = 0 })
      window = place
    end
    vim.api.nvim_win_set_buf(place, buffer)
  end
  if target.line and place ~= vim.api.nvim_get_current_win() then
    local line = math.min(target.line, vim.api.nvim_buf_line_count(buffer))
    vim.api.nvim_win_set_cursor(place, { line, 0 })
  end
end

return M
