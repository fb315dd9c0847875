vim9script
# Reports open files, the focused file, its cursor and selection, unsaved text and diagnostics.

import './bridge.vim'
import './diagnostics.vim'
import './names.vim'
import './text.vim'

# What agents see of a selection at most; the companion has the same limit.
const MAX_SELECTION_BYTES = 16 * 1024
# Larger buffers are not sent: Vim would stop responding for too long.
const MAX_BUFFER_BYTES = 16 * 1024 * 1024
# Large buffers are sent only after a longer pause.
const LARGE_BUFFER_BYTES = 512 * 1024
const FOCUS_DELAY_MS = 20
const DELAY_MS = 100
const LARGE_DELAY_MS = 1000

# By path: the b:changedtick of the unsaved text that was sent.
var unsaved: dict<number> = {}
# By path: whether the user knows that the buffer is too large to send.
var too_large: dict<bool> = {}
var has_warned_of_selection = false
# By buffer number: the timer that sends its unsaved text.
var timers: dict<number> = {}

# Reports everything, then every change.
export def Start()
  unsaved = {}
  for info in getbufinfo({buflisted: 1, bufloaded: 1})
    Open(info.bufnr)
    ReportUnsaved(info.bufnr)
  endfor
  Focus()
  diagnostics.Start()
  augroup alongside
    autocmd!
    autocmd BufEnter,WinEnter,CursorMoved,CursorMovedI,FocusGained * Focus()
    autocmd ModeChanged * OnModeChanged()
    autocmd BufReadPost,BufNewFile * Open(str2nr(expand('<abuf>')))
    autocmd BufDelete,BufWipeout * Close(str2nr(expand('<abuf>')))
    autocmd TextChanged,TextChangedI * ReportUnsavedSoon(str2nr(expand('<abuf>')))
    autocmd BufWritePost,BufReadPost * ReportUnsaved(str2nr(expand('<abuf>')))
    autocmd QuickFixCmdPost make,lmake diagnostics.OnMake(expand('<amatch>'))
    autocmd User ALELintPost diagnostics.Report()
    autocmd DirChanged global bridge.Notify('workspace/set', {folders: [bridge.Workspace()]})
  augroup END
enddef

export def Stop()
  autocmd_delete([{group: 'alongside', event: '*'}])
  for timer in values(timers)
    timer_stop(timer)
  endfor
  timers = {}
enddef

def Open(buffer: number)
  const path = names.Path(buffer)
  if path != ''
    bridge.Notify('context/open', {path: path})
  endif
enddef

def Close(buffer: number)
  StopTimer(buffer)
  const path = names.Path(buffer)
  if path != ''
    for reported in [unsaved, too_large]
      if has_key(reported, path)
        remove(reported, path)
      endif
    endfor
    bridge.Notify('context/buffer', {path: path})
    bridge.Notify('context/close', {path: path})
  endif
enddef

# The focused file

def Focus()
  const path = names.Path(bufnr())
  if path == '' || mode() =~ '^[ct]'
    # Agents started elsewhere connect to the most recently used editor.
    bridge.Notify('window/focus', {})
    return
  endif
  const before = strpart(getline('.'), 0, col('.') - 1)
  var params: dict<any> = {path: path, cursor: {line: line('.'), character: text.Utf16Length(before) + 1}}
  if mode() =~ "^[vV\<C-V>]"
    params.selectedText = Selection()
    params.selectionStart = SelectionStart()
  endif
  bridge.Notify('context/focus', params)
enddef

# Puts lines of the current file, or the whole file, into the prompt of the agent that was used last.
export def Send(has_lines: bool, first: number, last: number)
  const path = names.Path(bufnr())
  if path == ''
    bridge.Message('this buffer has no file to send')
    return
  endif
  var params: dict<any> = {path: path, cursor: {line: line('.'), character: 1}}
  if has_lines
    const lines = getline(first, min([last, first + MAX_SELECTION_BYTES]))
    params.cursor = {line: last, character: text.Utf16Length(getline(last)) + 1}
    params.selectedText = text.Truncate(join(lines, "\n"), MAX_SELECTION_BYTES)
    params.selectionStart = {line: first, character: 1}
  endif
  bridge.Notify('context/focus', params)
  bridge.Request('agent/mention', {}, (response) => {
    if has_key(response, 'error')
      bridge.Message(response.error.message)
    else
      bridge.Message('sent to ' .. response.result.agent.name)
    endif
  })
enddef

def OnModeChanged()
  # `:` in Visual mode passes through Normal mode, where the selection is gone.
  if v:event.old_mode =~ "^[vV\<C-V>]" && v:event.new_mode == 'n'
    timer_start(FOCUS_DELAY_MS, (_) => Focus())
  else
    Focus()
  endif
enddef

def SelectionStart(): dict<number>
  var [from, to] = [getpos('v')[1 : 2], getpos('.')[1 : 2]]
  if from[0] > to[0] || from[0] == to[0] && from[1] > to[1]
    from = to
  endif
  const before = mode() == 'v' ? strpart(getline(from[0]), 0, from[1] - 1) : ''
  return {line: from[0], character: text.Utf16Length(before) + 1}
enddef

def Selection(): string
  var [from, to] = [getpos('v')[1 : 2], getpos('.')[1 : 2]]
  if from[0] > to[0] || from[0] == to[0] && from[1] > to[1]
    [from, to] = [to, from]
  endif
  # Every line has at least its newline: more lines than bytes never fit.
  const last_line = min([to[0], from[0] + MAX_SELECTION_BYTES])
  var lines = getline(from[0], last_line)
  if mode() == 'v' && !empty(lines)
    if last_line == to[0]
      # The last character with all its bytes.
      const last = strpart(lines[-1], 0, to[1] - 1)
      lines[-1] = last .. matchstr(strpart(lines[-1], to[1] - 1), '^.')
    endif
    lines[0] = strpart(lines[0], from[1] - 1)
  endif
  const selected = join(lines, "\n")
  if len(selected) > MAX_SELECTION_BYTES && !has_warned_of_selection
    has_warned_of_selection = true
    bridge.Message('the selection is longer than 16 KiB; agents see its first 16 KiB')
  endif
  return text.Truncate(selected, MAX_SELECTION_BYTES)
enddef

# Unsaved text

def StopTimer(buffer: number)
  if has_key(timers, buffer)
    timer_stop(remove(timers, buffer))
  endif
enddef

def ReportUnsavedSoon(buffer: number)
  StopTimer(buffer)
  if names.Path(buffer) != ''
    const delay = text.Size(buffer) > LARGE_BUFFER_BYTES ? LARGE_DELAY_MS : DELAY_MS
    timers[buffer] = timer_start(delay, (_) => ReportUnsaved(buffer))
  endif
enddef

def ReportUnsaved(buffer: number)
  StopTimer(buffer)
  const path = bufexists(buffer) ? names.Path(buffer) : ''
  if path == ''
    return
  endif
  if getbufvar(buffer, '&modified') && !IsTooLarge(buffer, path)
    const tick = getbufvar(buffer, 'changedtick')
    if get(unsaved, path, -1) != tick
      unsaved[path] = tick
      bridge.Notify('context/buffer', {path: path, text: text.Of(buffer)})
    endif
  elseif has_key(unsaved, path)
    remove(unsaved, path)
    bridge.Notify('context/buffer', {path: path})
  endif
enddef

def IsTooLarge(buffer: number, path: string): bool
  if text.Size(buffer) <= MAX_BUFFER_BYTES
    return false
  endif
  if !has_key(too_large, path)
    too_large[path] = true
    bridge.Message(fnamemodify(path, ':~:.') .. ' is larger than 16 MiB; changes to it are compared with the file on disk, '
      .. 'not with your unsaved edits')
  endif
  return true
enddef
