--- What agents are told: open files, the one in front, cursor, selection, and unsaved texts.
local M = {}

local bridge = require('alongside.bridge')
local text = require('alongside.text')

-- The companion cuts a selection itself; this only keeps huge ones off the pipe. Larger buffers count as on disk.
local MOST_SELECTED, MOST_BUFFERED = 65536, 16 * 1024 * 1024

local group
local unsaved, waiting = {}, {}

--- The file of a buffer, if it is one.
local function path_of(buffer)
  if not vim.api.nvim_buf_is_valid(buffer) or vim.bo[buffer].buftype ~= '' then
    return nil
  end
  local name = vim.api.nvim_buf_get_name(buffer)
  if name == '' or name:match('^%a[%w+.-]+://') then
    return nil
  end
  return vim.fn.fnamemodify(name, ':p')
end

local function selection()
  local mode = vim.fn.mode()
  if not mode:match('^[vV\22]') then
    return nil
  end
  local lines = vim.fn.getregion(vim.fn.getpos('v'), vim.fn.getpos('.'), { type = mode })
  return table.concat(lines, '\n'):sub(1, MOST_SELECTED)
end

--- Reports the file in front. In a terminal or on the command line, the last file and selection stay, and only that this
--- Neovim is in use is told: agents that are started elsewhere find the editor that was used last.
local function focus()
  local path = path_of(vim.api.nvim_get_current_buf())
  if not path or vim.fn.mode():match('^[ct]') then
    bridge.notify('window/focus')
    return
  end
  local position = vim.api.nvim_win_get_cursor(0)
  local before = vim.api.nvim_get_current_line():sub(1, position[2])
  bridge.notify('context/focus', {
    path = path,
    cursor = { line = position[1], character = vim.fn.strutf16len(before) + 1 },
    selectedText = selection(),
  })
end

--- Reports whether a buffer has unsaved changes, and which text.
local function report_unsaved(buffer)
  local path = path_of(buffer)
  if not path then
    return
  end
  local size = vim.api.nvim_buf_get_offset(buffer, vim.api.nvim_buf_line_count(buffer))
  if vim.bo[buffer].modified and size <= MOST_BUFFERED then
    local now = text.of(buffer)
    if unsaved[path] ~= now then
      unsaved[path] = now
      bridge.notify('context/buffer', { path = path, text = now })
    end
  elseif unsaved[path] then
    unsaved[path] = nil
    bridge.notify('context/buffer', { path = path })
  end
end

--- Does something once after a burst of events.
local function soon(key, milliseconds, action)
  if waiting[key] then
    return
  end
  waiting[key] = true
  vim.defer_fn(function()
    waiting[key] = nil
    action()
  end, milliseconds)
end

local function close(path)
  if path then
    unsaved[path] = nil
    bridge.notify('context/buffer', { path = path })
    bridge.notify('context/close', { path = path })
  end
end

local function open(buffer)
  local path = vim.bo[buffer].buflisted and path_of(buffer)
  if path then
    bridge.notify('context/open', { path = path })
  end
end

--- Reports everything, and from now on every change.
function M.start()
  unsaved = {}
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buffer) then
      open(buffer)
      report_unsaved(buffer)
    end
  end
  focus()
  group = vim.api.nvim_create_augroup('alongside-context', {})
  local function on(events, action)
    vim.api.nvim_create_autocmd(events, { group = group, callback = action })
  end
  on({ 'BufEnter', 'WinEnter', 'CursorMoved', 'CursorMovedI', 'ModeChanged', 'FocusGained', 'VimResume' }, function()
    soon('focus', 20, focus)
  end)
  on({ 'BufReadPost', 'BufNewFile', 'BufFilePost' }, function(event)
    open(event.buf)
  end)
  on({ 'BufDelete', 'BufWipeout', 'BufFilePre' }, function(event)
    close(path_of(event.buf))
  end)
  on({ 'TextChanged', 'TextChangedI', 'BufModifiedSet', 'BufWritePost', 'BufReadPost' }, function(event)
    soon(event.buf, 50, function()
      report_unsaved(event.buf)
    end)
  end)
  on('DirChanged', function(event)
    if event.match == 'global' then
      bridge.move()
    end
  end)
end

--- Whether nothing that happened is still to be reported.
function M.is_reported()
  return next(waiting) == nil
end

--- Reports nothing any more.
function M.stop()
  if group then
    vim.api.nvim_del_augroup_by_id(group)
    group = nil
  end
end

return M
