--- Texts as they are in files, and as Neovim holds them: what is not touched goes back byte for byte.
local M = {}

local BOM = '\239\187\191'
local ENDINGS = { unix = '\n', dos = '\r\n', mac = '\r' }

--- Lines of a text, and the buffer options that say how they are joined again.
function M.split(text)
  local format = { bomb = text:sub(1, 3) == BOM, fileformat = 'unix', endofline = text:sub(-1) == '\n' }
  if format.bomb then
    text = text:sub(4)
  end
  -- Only if every line ends like that; otherwise the carriage returns stay where they are and can be seen.
  local _, breaks = text:gsub('\n', '')
  local _, pairs_of_both = text:gsub('\r\n', '')
  if breaks > 0 and breaks == pairs_of_both then
    format.fileformat = 'dos'
    text = text:gsub('\r\n', '\n')
  end
  if format.endofline then
    text = text:sub(1, -2)
  end
  return vim.split(text, '\n', { plain = true }), format
end

--- The text of a buffer.
function M.of(buffer)
  local options = vim.bo[buffer]
  local ending = ENDINGS[options.fileformat]
  local text = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, true), ending)
  if text == '' and vim.api.nvim_buf_get_offset(buffer, vim.api.nvim_buf_line_count(buffer)) <= 0 then
    return options.bomb and BOM or ''
  end
  return (options.bomb and BOM or '') .. text .. (options.endofline and ending or '')
end

--- Puts a text into a buffer.
function M.put(buffer, text)
  local lines, format = M.split(text)
  vim.api.nvim_buf_set_lines(buffer, 0, -1, true, lines)
  for option, value in pairs(format) do
    vim.bo[buffer][option] = value
  end
  vim.bo[buffer].modified = false
end

return M
