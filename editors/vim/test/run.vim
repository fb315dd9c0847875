vim9script
# Runs every test of this directory, writes the failures to $REPORT, and exits with 1 if there are any:
#   REPORT=/dev/tty vim --not-a-term -u NONE -i NONE -n -N --cmd "set runtimepath^=$PWD" -S test/run.vim </dev/null

set encoding=utf-8
g:alongside_autostart = 0
runtime plugin/alongside.vim

const DIRECTORY = expand('<sfile>:p:h')

for file in glob(DIRECTORY .. '/*_test.vim', false, true)
  execute 'source ' .. fnameescape(file)
endfor

var report: list<string> = []
const tests = getcompletion('g:Test_', 'function')
for name in tests
  v:errors = []
  try
    call(substitute(name, '()\=$', '', ''), [])
  catch
    add(v:errors, v:exception .. ' at ' .. v:throwpoint)
  endtry
  silent! AlongsideStop
  silent! :%bwipeout!
  report += mapnew(v:errors, (_, error) => name .. ' ' .. error)
endfor
add(report, len(tests) .. ' tests, ' .. (len(report) == 0 ? 'all passed' : 'failures above'))
writefile(report, $REPORT)
execute len(report) == 1 && len(tests) > 0 ? 'qall!' : 'cquit'
