vim9script
# The lines of a diff.

import '../autoload/alongside/preview.vim'

def Numbered(changed: dict<string>): string
  return range(1, 20)->mapnew((_, number) => get(changed, number, number .. '') .. "\n")->join('')
enddef

def Hunk(state: string, start: number, removed = 1, added = 1): dict<any>
  return {state: state, base: {start: start, count: removed}, draft: {start: start, count: added}}
enddef

def Diff(review: dict<any>): string
  return preview.Lines(extend({notes: []}, review))->join(';')
enddef

def g:Test_diff_has_context_and_leaves_out_rejected_hunks()
  assert_equal('@@ line 2 @@; 1;-2;+two; 3;-4;+four; 5; 6; 7', Diff({base: Numbered({}),
    draft: Numbered({2: 'two', 4: 'four'}), hunks: [Hunk('accepted', 2), Hunk('edited', 4), Hunk('rejected', 15)]}))
  assert_equal('@@ line 1 @@;-1;+one; 2; 3; 4;@@ line 20 @@; 17; 18; 19;-20;+twenty', Diff({base: Numbered({}),
    draft: Numbered({1: 'one', 20: 'twenty'}), hunks: [Hunk('accepted', 1), Hunk('accepted', 20)]}))
enddef

def g:Test_diff_shows_new_files_and_removed_lines()
  assert_equal('@@ line 1 @@;+a;+b', Diff({draft: "a\r\nb\r\n", hunks: [Hunk('accepted', 1, 0, 2)]}))
  assert_equal('A note.;@@ line 2 @@; a;-b',
    Diff({base: "a\nb\n", draft: "a\n", hunks: [Hunk('accepted', 2, 1, 0)], notes: ['A note.']}))
enddef
