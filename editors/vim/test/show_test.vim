vim9script
# Files that an agent wants to show.

import '../autoload/alongside/show.vim'

def File(lines: list<string>): string
  const path = tempname() .. '.txt'
  writefile(lines, path)
  return path
enddef

def g:Test_file_is_shown_without_the_focus()
  silent only
  execute 'edit ' .. File(['mine'])
  const current = win_getid()
  const first = File(['one', 'two', 'three'])
  show.Show({path: first, line: 3})
  assert_equal(current, win_getid())
  const window = bufwinid(bufnr(first))
  assert_true(window > 0)
  assert_equal(3, line('.', window))
  # The next one in the same window.
  const second = File(['one'])
  show.Show({path: second})
  assert_equal(window, bufwinid(bufnr(second)))
  assert_equal(2, winnr('$'))
  # A visible one stays where it is.
  show.Show({path: second, line: 1})
  assert_equal(2, winnr('$'))
  silent only
enddef
