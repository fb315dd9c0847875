vim9script
# The plugin with a fake companion.

const COMPANION = expand('<sfile>:p:h') .. '/companion.sh'

var directory = ''

def Received(): list<dict<any>>
  const file = directory .. '/received'
  return filereadable(file) ? mapnew(readfile(file), (_, line) => json_decode(line)) : []
enddef

# The parameters of the notifications or requests of a method.
def Params(method: string): list<dict<any>>
  return Received()->filter((_, message) => message.method == method)->mapnew((_, message) => message.params)
enddef

# Waits until the condition holds; callbacks and timers run in the meantime.
def WaitFor(Condition: func(): bool, what: string)
  for _ in range(1000)
    if Condition()
      return
    endif
    sleep 10m
  endfor
  assert_report('never: ' .. what)
enddef

# Opens a file and starts the plugin.
def Open(name: string, lines: list<string>)
  directory = tempname()
  mkdir(directory)
  $ALONGSIDE_TEST = directory
  g:alongside_command = COMPANION
  writefile(lines, directory .. '/' .. name)
  execute 'edit ' .. fnameescape(directory .. '/' .. name)
  messages clear
  AlongsideStart
  WaitFor(() => !empty(Params('context/focus')), 'the plugin started')
enddef

def Messages(): string
  return execute('messages')
enddef

def g:Test_typing_sends_the_buffer_once_after_a_pause()
  Open('a.txt', ['text'])
  for number in range(1, 50)
    setline(1, 'text ' .. number)
    doautocmd TextChangedI
  endfor
  WaitFor(() => !empty(Params('context/buffer')), 'the buffer was sent')
  sleep 300m
  assert_equal(['text 50' .. "\n"], Params('context/buffer')->mapnew((_, params) => params.text))
enddef

def g:Test_lines_are_the_selection_when_they_are_sent()
  Open('a.txt', ['one', 'two', 'three'])
  const before = len(Params('context/focus'))
  execute ':2,3AlongsideSend'
  WaitFor(() => Messages() =~ 'sent to Claude Code', 'the answer')
  const focus = Params('context/focus')[before]
  assert_equal("two\nthree", focus.selectedText)
  assert_equal({line: 2, character: 1}, focus.selectionStart)
  assert_equal({line: 3, character: 6}, focus.cursor)
  AlongsideSend
  WaitFor(() => len(Params('agent/mention')) == 2, 'the whole file')
  assert_false(has_key(Params('context/focus')[-1], 'selectedText'))
enddef

def g:Test_writing_reports_that_nothing_is_unsaved()
  Open('a.txt', ['text'])
  setline(1, 'other')
  doautocmd TextChanged
  WaitFor(() => len(Params('context/buffer')) == 1, 'the buffer was sent')
  silent write
  WaitFor(() => len(Params('context/buffer')) == 2, 'the save was reported')
  assert_false(has_key(Params('context/buffer')[1], 'text'))
enddef

def g:Test_buffer_over_the_limit_is_reported_once_and_not_sent()
  Open('large.txt', ['text'])
  setline(1, 'small')
  doautocmd TextChanged
  WaitFor(() => len(Params('context/buffer')) == 1, 'the buffer was sent')
  const line = repeat('0123456789abcde', 1024)
  setline(1, repeat([line], 1100))
  for _ in range(2)
    doautocmd TextChanged
    doautocmd BufWritePost
  endfor
  WaitFor(() => len(Params('context/buffer')) == 2, 'the companion knows that there is no text')
  assert_false(has_key(Params('context/buffer')[1], 'text'))
  assert_equal(1, count(Messages(), 'large.txt is larger than 16 MiB'), Messages())
enddef

def g:Test_selection_over_the_limit_is_cut_between_characters_and_reported_once()
  Open('a.txt', [repeat('ü', 10000), 'end'])
  normal! ggVG
  doautocmd CursorMoved
  doautocmd CursorMoved
  WaitFor(() => has_key(Params('context/focus')[-1], 'selectedText'), 'the selection was sent')
  execute "normal! \<Esc>"
  assert_equal(repeat('ü', 8192), Params('context/focus')[-1].selectedText)
  assert_equal(1, count(Messages(), 'the selection is longer than 16 KiB'), Messages())
enddef

def g:Test_log_has_the_stderr_of_the_companion()
  Open('a.txt', ['text'])
  AlongsideLog
  WaitFor(() => getline(1, '$')->join()->stridx('a line for the log') >= 0, 'the line is in the log')
  assert_equal('nofile', &buftype)
enddef

def g:Test_exit_of_a_stopped_companion_leaves_the_next_one_alone()
  Open('a.txt', ['text'])
  AlongsideStop
  AlongsideStart
  WaitFor(() => len(Params('hello')) == 2, 'the next companion started')
  sleep 300m
  const count = len(Params('context/focus'))
  doautocmd CursorMoved
  WaitFor(() => len(Params('context/focus')) > count, 'the next companion still receives updates')
  assert_notmatch('was stopped', Messages())
enddef

# A `:make` that prints this.
def Make(output: list<string>)
  writefile(output, directory .. '/output')
  &makeprg = 'cat ' .. fnameescape(directory .. '/output')
  &errorformat = '%f:%l:%c: %trror: %m,%f:%l:%c: %tarning: %m'
  silent make!
enddef

def g:Test_errors_of_make_are_reported_until_the_next_one()
  Open('a.txt', ['one', 'ü𝄞two'])
  const path = directory .. '/a.txt'
  Make([path .. ':1:1: warning: unused', path .. ':2:7: error: wrong', 'something else'])
  WaitFor(() => len(Params('context/diagnostics')) == 1, 'the errors were sent')
  const sent = Params('context/diagnostics')[0]
  assert_equal(path, sent.path)
  const [first, second] = [{line: 2, character: 4}, {line: 1, character: 1}]
  assert_equal([{start: first, end: first, severity: 'error', message: 'wrong'},
    {start: second, end: second, severity: 'warning', message: 'unused'}], sent.diagnostics)
  execute 'silent vimgrep /one/j ' .. fnameescape(path)
  Make(['something else'])
  WaitFor(() => len(Params('context/diagnostics')) == 2, 'the errors were cleared')
  assert_equal({path: path, diagnostics: []}, Params('context/diagnostics')[1])
enddef

def g:Test_errors_that_ale_shows_are_reported()
  Open('a.txt', ['let x = 1'])
  # As much of ALE as is needed.
  mkdir(directory .. '/ale/autoload/ale', 'p')
  writefile(['function! ale#engine#GetLoclist(buffer) abort', '  return get(g:, "found", [])', 'endfunction'],
    directory .. '/ale/autoload/ale/engine.vim')
  &runtimepath ..= ',' .. directory .. '/ale'
  g:found = [{lnum: 1, col: 5, end_lnum: 1, end_col: 5, type: 'W', text: 'unused', linter_name: 'eslint', code: 'no-unused'}]
  call('ale#engine#GetLoclist', [1])
  doautocmd User ALELintPost
  doautocmd User ALELintPost
  WaitFor(() => len(Params('context/diagnostics')) == 1, 'the warning was sent')
  assert_equal([{start: {line: 1, character: 5}, end: {line: 1, character: 6}, severity: 'warning', message: 'unused',
    source: 'eslint', code: 'no-unused'}], Params('context/diagnostics')[0].diagnostics)
  g:found = []
  doautocmd User ALELintPost
  WaitFor(() => len(Params('context/diagnostics')) == 2, 'the warning was cleared')
enddef
