--- A line in the corner of the screen for pending changes that are not on it. Unlike a message, it is visible in every mode.
local M = {}

---@type integer?
local window

vim.api.nvim_set_hl(0, 'AlongsideNotice', { link = 'IncSearch', default = true })

---@return string?
local function text()
  local pending = require('alongside.reviews').unseen()
  local first = pending[1]
  if not first or not require('alongside.bridge').welcome then
    return nil
  end
  local what = #pending == 1 and vim.fs.basename(first.path) .. ' to review' or #pending .. ' changes to review'
  return (' %s: %s '):format(what, require('alongside.opening').hint())
end

local function close()
  if window and vim.api.nvim_win_is_valid(window) then
    vim.api.nvim_win_close(window, true)
  end
  window = nil
end

---@param line string
local function show(line)
  local has_tabline = vim.o.showtabline == 2 or vim.o.showtabline == 1 and vim.fn.tabpagenr('$') > 1
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.bo[buffer].bufhidden = 'wipe'
  vim.api.nvim_buf_set_lines(buffer, 0, -1, true, { line })
  window = vim.api.nvim_open_win(buffer, false, {
    relative = 'editor',
    anchor = 'NE',
    row = has_tabline and 1 or 0,
    col = vim.o.columns,
    width = math.min(vim.fn.strdisplaywidth(line), vim.o.columns),
    height = 1,
    style = 'minimal',
    focusable = false,
    noautocmd = true,
    zindex = 200,
  })
  vim.wo[window].winhighlight = 'NormalFloat:AlongsideNotice'
end

--- Shows what is pending now.
function M.update()
  close()
  local line = text()
  if line then
    -- Not in the command-line window, where no window can be opened.
    pcall(show, line)
  end
end

-- A floating window belongs to one tab, and does not follow the corner.
vim.api.nvim_create_autocmd({ 'TabEnter', 'VimResized', 'CmdwinLeave' }, {
  group = vim.api.nvim_create_augroup('alongside-notice', {}),
  callback = vim.schedule_wrap(M.update),
})

return M
