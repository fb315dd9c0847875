--- Converts between the text of a file and a Neovim buffer. What is not touched survives byte for byte.
local M = {}

local BOM = '\239\187\191'
local ENDINGS = { unix = '\n', dos = '\r\n', mac = '\r' }

---@class alongside.Format
---@field bomb boolean
---@field fileformat 'unix'|'dos'
---@field endofline boolean

--- The lines of a text, and the buffer options that join them again.
---@param text string
---@return string[] lines
---@return alongside.Format format
function M.split(text)
  ---@type alongside.Format
  local format = { bomb = text:sub(1, 3) == BOM, fileformat = 'unix', endofline = text:sub(-1) == '\n' }
  if format.bomb then
    text = text:sub(4)
  end
  -- Only if every line ends in CRLF; otherwise carriage returns stay visible.
  local _, breaks = text:gsub('\n', '')
  local _, crlf_breaks = text:gsub('\r\n', '')
  if breaks > 0 and breaks == crlf_breaks then
    format.fileformat = 'dos'
    text = text:gsub('\r\n', '\n')
  end
  if format.endofline then
    text = text:sub(1, -2)
  end
  return vim.split(text, '\n', { plain = true }), format
end

--- The text that saving the buffer would write.
---@param buffer integer
---@return string
function M.of(buffer)
  local options = vim.bo[buffer]
  local ending = ENDINGS[options.fileformat]
  local text = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, true), ending)
  if text == '' and M.size(buffer) <= 0 then
    return options.bomb and BOM or ''
  end
  return (options.bomb and BOM or '') .. text .. (options.endofline and ending or '')
end

--- The size of a buffer in bytes, without building its text.
---@param buffer integer
---@return integer
function M.size(buffer)
  return vim.api.nvim_buf_get_offset(buffer, vim.api.nvim_buf_line_count(buffer))
end

--- Replaces the content of a buffer.
---@param buffer integer
---@param text string
function M.put(buffer, text)
  local lines, format = M.split(text)
  vim.api.nvim_buf_set_lines(buffer, 0, -1, true, lines)
  for option, value in pairs(format) do
    vim.bo[buffer][option] = value
  end
  vim.bo[buffer].modified = false
end

--- At most this many bytes of a text, cut between characters.
---@param text string
---@param bytes integer
---@return string
function M.truncate(text, bytes)
  if #text <= bytes then
    return text
  end
  return text:sub(1, bytes + vim.str_utf_start(text, bytes + 1))
end

return M
