--- A read-only diff of one pending change, in a window to the side. It never takes the focus, and closing it decides nothing.
local M = {}

local text = require('alongside.text')

local CONTEXT_LINES = 3
-- Longer diffs are cut: the review has the rest.
local MAX_LINES = 2000
-- With fewer columns the window is below.
local MIN_COLUMNS_BESIDE = 120

---@class alongside.Preview
---@field id integer
---@field buffer integer
---@field windows { id: integer, width: integer, height: integer }[] the other windows when it was opened

---@type alongside.Preview?
local shown
-- The reviews whose preview the user closed.
---@type table<integer, boolean?>
local dismissed = {}

--- The review in the preview.
---@return integer?
function M.id()
  return shown and shown.id
end

--- Whether the user closed the preview of this review.
---@param id integer
---@return boolean
function M.is_dismissed(id)
  return dismissed[id] ~= nil
end

--- The window of the preview in the current tab.
---@return integer?
local function window()
  for _, candidate in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    if shown and vim.api.nvim_win_get_buf(candidate) == shown.buffer then
      return candidate
    end
  end
end

--- The windows of a tab that share its space, and their sizes.
---@param tab integer
---@return { id: integer, width: integer, height: integer }[]
local function layout(tab)
  local windows = {}
  for _, id in ipairs(vim.api.nvim_tabpage_list_wins(tab)) do
    if vim.api.nvim_win_get_config(id).relative == '' then
      windows[#windows + 1] =
        { id = id, width = vim.api.nvim_win_get_width(id), height = vim.api.nvim_win_get_height(id) }
    end
  end
  return windows
end

--- Restores the sizes of the windows, unless the user has opened or closed some.
---@param windows { id: integer, width: integer, height: integer }[]
local function restore(windows)
  local first = windows[1].id
  local now = vim.api.nvim_win_is_valid(first) and layout(vim.api.nvim_win_get_tabpage(first)) or {}
  for index = 1, math.max(#now, #windows) do
    if not now[index] or not windows[index] or now[index].id ~= windows[index].id then
      return
    end
  end
  -- Twice, as winrestcmd() does: a size may only fit after another was set.
  for _ = 1, 2 do
    for _, window in ipairs(windows) do
      vim.api.nvim_win_set_width(window.id, window.width)
      vim.api.nvim_win_set_height(window.id, window.height)
    end
  end
end

---@return boolean
function M.is_visible()
  return window() ~= nil
end

---@return boolean
function M.is_current()
  return shown ~= nil and shown.buffer == vim.api.nvim_get_current_buf()
end

--- The differences between the file and the draft.
---@param review alongside.FullReview
---@return string[]
function M.lines(review)
  local base, draft = text.split(review.base or ''), text.split(review.draft)
  local lines = vim.deepcopy(review.notes)
  local function take(mark, from, first, last)
    for number = math.max(first, 1), math.min(last, #from) do
      lines[#lines + 1] = mark .. from[number]
    end
  end
  local seen = 0
  for index, hunk in ipairs(review.hunks) do
    if #lines >= MAX_LINES then
      lines[#lines + 1] = '… and more'
      break
    end
    if hunk.state ~= 'rejected' then
      local start, next_hunk = hunk.draft.start, review.hunks[index + 1]
      local first = math.max(seen + 1, start - CONTEXT_LINES)
      if first > seen + 1 or seen == 0 then
        lines[#lines + 1] = ('@@ line %d @@'):format(start)
      end
      take(' ', draft, first, start - 1)
      take('-', base, hunk.base.start, math.min(hunk.base.start + hunk.base.count - 1, hunk.base.start + MAX_LINES))
      take('+', draft, start, math.min(start + hunk.draft.count - 1, start + MAX_LINES))
      seen = start + hunk.draft.count - 1
      local last = math.min(seen + CONTEXT_LINES, next_hunk and next_hunk.draft.start - 1 or math.huge)
      take(' ', draft, seen + 1, last)
      seen = math.max(seen, last)
    end
  end
  return lines
end

---@param buffer integer
---@param review alongside.FullReview
local function put(buffer, review)
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, 0, -1, true, M.lines(review))
  vim.bo[buffer].modifiable, vim.bo[buffer].modified = false, false
end

--- Shows a review in a new window, unless the screen has no room for it.
---@param review alongside.FullReview
---@param name string
---@param title string what the window says about it
---@return boolean
function M.open(review, name, title)
  M.close()
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_name(buffer, name)
  vim.bo[buffer].bufhidden = 'wipe'
  put(buffer, review)
  vim.bo[buffer].syntax = 'diff'
  local windows = layout(0)
  local split = vim.o.columns >= MIN_COLUMNS_BESIDE and 'right' or 'below'
  local ok, opened = pcall(vim.api.nvim_open_win, buffer, false, { split = split, win = -1, style = 'minimal' })
  if not ok then
    vim.api.nvim_buf_delete(buffer, { force = true })
    return false
  end
  vim.wo[opened][0].winbar = title:gsub('%%', '%%%%')
  vim.wo[opened][0].wrap = false
  shown = { id = review.id, buffer = buffer, windows = windows }
  vim.api.nvim_create_autocmd('BufWipeout', {
    buffer = buffer,
    callback = function()
      if shown and shown.buffer == buffer then
        shown, dismissed[review.id] = nil, true
        vim.schedule(require('alongside.statusline').changed)
      end
    end,
  })
  return true
end

-- `:q` in the last other window exits, as it does without a preview.
vim.api.nvim_create_autocmd('QuitPre', {
  group = vim.api.nvim_create_augroup('alongside-preview', {}),
  callback = function()
    if M.is_visible() and not M.is_current() and #layout(0) == 2 then
      M.close()
      vim.schedule(require('alongside.statusline').changed)
    end
  end,
})

--- Shows a new state of the review.
---@param review alongside.FullReview
function M.update(review)
  if shown and shown.id == review.id then
    put(shown.buffer, review)
  end
end

--- Closes the window and restores the sizes of the others, unless the user has changed the windows since.
function M.close()
  local preview = shown
  if not preview then
    return
  end
  shown = nil
  vim.api.nvim_buf_delete(preview.buffer, { force = true })
  restore(preview.windows)
end

return M
