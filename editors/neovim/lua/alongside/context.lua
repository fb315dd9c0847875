--- Reports open files, the focused file, its cursor and selection, unsaved text and diagnostics.
local M = {}

local bridge = require('alongside.bridge')
local diagnostics = require('alongside.diagnostics')
local text = require('alongside.text')

-- What agents see of a selection at most; the companion has the same limit.
local MAX_SELECTION_BYTES = 16 * 1024
-- Larger buffers are not sent: Neovim would stop responding for too long.
local MAX_BUFFER_BYTES = 16 * 1024 * 1024
-- Large buffers are sent only after a longer pause.
local LARGE_BUFFER_BYTES = 512 * 1024
local FOCUS_DELAY_MS, DELAY_MS, LARGE_DELAY_MS = 20, 50, 1000

---@class alongside.Position
---@field line integer from 1
---@field character integer from 1, in UTF-16 code units

---@class alongside.Focus
---@field path string
---@field cursor alongside.Position
---@field selectedText? string
---@field selectionStart? alongside.Position

---@type integer?
local group
-- The unsaved text that was sent, by path.
---@type table<string, string?>
local unsaved = {}
-- Paths whose buffers the user knows to be too large to send.
---@type table<string, boolean?>
local too_large = {}
-- The diagnostics that were sent, by path.
---@type table<string, alongside.Diagnostic[]?>
local diagnosed = {}
local has_warned_of_selection = false
-- What is to be reported soon: 'focus', 'diagnostics' and a buffer, or a buffer.
---@type table<string|integer, boolean?>
local scheduled = {}
-- The last focus in a burst of events. It is sent even if a terminal or the command line has the focus when the burst ends.
---@type alongside.Focus?
local latest

--- The file in a buffer, if there is one.
---@param buffer integer
---@return string?
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

--- The selected text and where it begins.
---@return string?, alongside.Position?
local function selection()
  local mode = vim.fn.mode()
  if not mode:match('^[vV\22]') then
    return nil, nil
  end
  local from, to = vim.fn.getpos('v'), vim.fn.getpos('.')
  local first, last = vim.fn.line('v'), vim.fn.line('.')
  if first > last then
    from, to, first, last = to, from, last, first
  end
  -- Every line has at least its newline: more lines than bytes never fit.
  to[2] = math.min(last, first + MAX_SELECTION_BYTES)
  local selected = table.concat(vim.fn.getregion(from, to, { type = mode }), '\n')
  if #selected > MAX_SELECTION_BYTES and not has_warned_of_selection then
    has_warned_of_selection = true
    require('alongside').notify('the selection is longer than 16 KiB; agents see its first 16 KiB', vim.log.levels.WARN)
  end
  local column = mode == 'V' and 1 or first == last and math.min(from[3], to[3]) or from[3]
  local before = vim.fn.getline(first):sub(1, column - 1)
  return text.truncate(selected, MAX_SELECTION_BYTES), { line = first, character = vim.fn.strutf16len(before) + 1 }
end

--- The focused file, or nil in a terminal, on the command line and in other buffers without a file.
---@return alongside.Focus?
local function current_focus()
  local path = path_of(vim.api.nvim_get_current_buf())
  if not path or vim.fn.mode():match('^[ct]') then
    return nil
  end
  local before = vim.api.nvim_get_current_line():sub(1, vim.fn.col('.') - 1)
  local selected, start = selection()
  ---@type alongside.Focus
  local focus = {
    path = path,
    cursor = { line = vim.fn.line('.'), character = vim.fn.strutf16len(before) + 1 },
    selectedText = selected,
    selectionStart = start,
  }
  return focus
end

--- Reports the focused file. Where there is none, the last file and selection stay, and only the use of this Neovim is
--- reported: agents started elsewhere connect to the most recently used editor.
local function report_focus()
  local current = current_focus()
  local focus = current or latest
  latest = nil
  if focus then
    bridge.notify('context/focus', focus)
  end
  if not current then
    bridge.notify('window/focus')
  end
end

---@param buffer integer
---@param path string
---@return boolean
local function is_too_large(buffer, path)
  if text.size(buffer) <= MAX_BUFFER_BYTES then
    return false
  end
  if not too_large[path] then
    too_large[path] = true
    local message =
      ' is larger than 16 MiB; changes to it are compared with the file on disk, not with your unsaved edits'
    require('alongside').notify(vim.fn.fnamemodify(path, ':~:.') .. message, vim.log.levels.WARN)
  end
  return true
end

--- Reports the unsaved text of a buffer, or that there is none.
---@param buffer integer
local function report_unsaved(buffer)
  local path = path_of(buffer)
  if not path then
    return
  end
  if vim.bo[buffer].modified and not is_too_large(buffer, path) then
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

--- Reports the diagnostics of a buffer, unless they are the same as before.
---@param buffer integer
local function report_diagnostics(buffer)
  local path = path_of(buffer)
  if not path then
    return
  end
  local now = diagnostics.of(buffer)
  if not vim.deep_equal(now, diagnosed[path] or {}) then
    diagnosed[path] = #now > 0 and now or nil
    bridge.notify('context/diagnostics', { path = path, diagnostics = now })
  end
end

--- Calls `action` once per burst of events.
---@param key string|integer
---@param milliseconds integer
---@param action fun()
local function soon(key, milliseconds, action)
  if scheduled[key] then
    return
  end
  scheduled[key] = true
  vim.defer_fn(function()
    scheduled[key] = nil
    action()
  end, milliseconds)
end

---@param path? string
local function close(path)
  if path then
    unsaved[path], too_large[path] = nil, nil
    if latest and latest.path == path then
      latest = nil
    end
    if diagnosed[path] then
      diagnosed[path] = nil
      bridge.notify('context/diagnostics', { path = path, diagnostics = {} })
    end
    bridge.notify('context/buffer', { path = path })
    bridge.notify('context/close', { path = path })
  end
end

---@param buffer integer
local function open(buffer)
  local path = vim.bo[buffer].buflisted and path_of(buffer)
  if path then
    bridge.notify('context/open', { path = path })
  end
end

--- Reports everything, then every change.
--- Puts lines of the current file, or the whole file, into the prompt of the agent that was used last.
---@param first? integer
---@param last? integer
function M.send(first, last)
  local path = path_of(vim.api.nvim_get_current_buf())
  if not path then
    return require('alongside').notify('this buffer has no file to send', vim.log.levels.WARN)
  end
  ---@type alongside.Focus
  local focus = { path = path, cursor = { line = vim.fn.line('.'), character = 1 } }
  if first and last then
    local lines = vim.api.nvim_buf_get_lines(0, first - 1, math.min(last, first + MAX_SELECTION_BYTES), false)
    focus.cursor = { line = last, character = vim.fn.strutf16len(vim.fn.getline(last)) + 1 }
    focus.selectedText = text.truncate(table.concat(lines, '\n'), MAX_SELECTION_BYTES)
    focus.selectionStart = { line = first, character = 1 }
  end
  latest = nil
  bridge.notify('context/focus', focus)
  bridge.request('agent/mention', nil, function(error, sent)
    local notify = require('alongside').notify
    if error then
      return notify(error.message, vim.log.levels.WARN)
    end
    notify('sent to ' .. bridge.agent_name(sent.agent.name, sent.agent.version))
  end)
end

function M.start()
  unsaved, diagnosed = {}, {}
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buffer) then
      open(buffer)
      report_unsaved(buffer)
    end
    report_diagnostics(buffer)
  end
  report_focus()
  group = vim.api.nvim_create_augroup('alongside-context', {})
  local function on(events, action)
    vim.api.nvim_create_autocmd(events, { group = group, callback = action })
  end
  on(
    { 'BufEnter', 'WinEnter', 'CursorMoved', 'CursorMovedI', 'ModeChanged', 'FocusGained', 'VimResume' },
    function(event)
      -- `:` in Visual mode passes through Normal mode, where the selection is gone.
      if not (event.event == 'ModeChanged' and event.match:match('^[vV\22].*:n$')) then
        latest = current_focus() or latest
      end
      soon('focus', FOCUS_DELAY_MS, report_focus)
    end
  )
  on({ 'BufReadPost', 'BufNewFile', 'BufFilePost' }, function(event)
    open(event.buf)
  end)
  on({ 'BufDelete', 'BufWipeout', 'BufFilePre' }, function(event)
    close(path_of(event.buf))
  end)
  on({ 'TextChanged', 'TextChangedI', 'BufModifiedSet', 'BufWritePost', 'BufReadPost' }, function(event)
    local is_large = text.size(event.buf) > LARGE_BUFFER_BYTES
    soon(event.buf, is_large and LARGE_DELAY_MS or DELAY_MS, function()
      report_unsaved(event.buf)
    end)
  end)
  on('DiagnosticChanged', function(event)
    soon('diagnostics ' .. event.buf, DELAY_MS, function()
      report_diagnostics(event.buf)
    end)
  end)
  on('DirChanged', function(event)
    if event.match == 'global' then
      bridge.move()
    end
  end)
end

--- Whether everything that happened was reported.
---@return boolean
function M.is_reported()
  return next(scheduled) == nil
end

--- Stops reporting.
function M.stop()
  if group then
    vim.api.nvim_del_augroup_by_id(group)
    group = nil
  end
end

return M
