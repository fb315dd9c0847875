vim9script
# Texts survive a buffer byte for byte.

import '../autoload/alongside/text.vim'

def g:Test_text_comes_back_as_it_was()
  new
  for content in ['', "\n", 'a', "a\n", "a\n\n", "a\r\nb\r\n", "a\r\nb", "a\r\nb\n", "\r\n", "a\rb", "\<Char-0xfeff>",
      "\<Char-0xfeff>a\r\nb", "ü🦀\n", "a\r\r\nb\r\n"]
    text.Put(bufnr(), content)
    assert_equal(content, text.Of(bufnr()))
    text.Put(bufnr(), "something\r\nelse\r\n")
    text.Put(bufnr(), content)
    assert_equal(content, text.Of(bufnr()))
  endfor
enddef

def g:Test_cursor_stays_when_a_text_is_replaced()
  new
  text.Put(bufnr(), "1\n2\n3\n")
  cursor(3, 1)
  text.Put(bufnr(), "1\ntwo\n3\n4\n")
  assert_equal(3, line('.'))
enddef

def g:Test_truncation_keeps_whole_characters()
  assert_equal('abc', text.Truncate('abc', 3))
  assert_equal('ab', text.Truncate('abc', 2))
  assert_equal('aü', text.Truncate('aüü', 4))
  assert_equal('', text.Truncate('🦀', 3))
  assert_equal('🦀', text.Truncate('🦀🦀', 7))
enddef

def g:Test_utf16_length_counts_surrogate_pairs()
  assert_equal(0, text.Utf16Length(''))
  assert_equal(5, text.Utf16Length('aü🦀x'))
enddef
