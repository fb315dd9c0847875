vim9script
# A read-only diff of one pending change, in a window to the side. It never takes the focus, and closing it decides nothing.

import './names.vim'
import './text.vim'

const CONTEXT_LINES = 3
# Longer diffs are cut: the review has the rest.
const MAX_LINES = 2000
# With fewer columns the window is below.
const MIN_COLUMNS_BESIDE = 120

# The review in the preview: id, buffer, and the sizes of the other windows when it was opened.
var shown: dict<any> = {}
# The reviews whose preview the user closed.
var dismissed: dict<bool> = {}
var OnDismissed: func = () => {
}

# Calls Callback when the user closes the preview.
export def Start(Callback: func)
  OnDismissed = Callback
  augroup alongside_preview
    autocmd!
    autocmd QuitPre * CloseIfLast()
  augroup END
enddef

# `:q` in the last other window exits, as it does without a preview.
def CloseIfLast()
  if IsVisible() && !IsCurrent() && winnr('$') == 2
    Close()
    timer_start(0, (_) => OnDismissed())
  endif
enddef

export def Id(): number
  return get(shown, 'id', 0)
enddef

export def IsVisible(): bool
  return !empty(shown) && bufwinnr(shown.buffer) > 0
enddef

export def IsCurrent(): bool
  return !empty(shown) && shown.buffer == bufnr()
enddef

export def IsDismissed(id: number): bool
  return has_key(dismissed, id)
enddef

# The differences between the file and the draft.
export def Lines(review: dict<any>): list<string>
  const base = text.Lines(get(review, 'base', ''))
  const draft = text.Lines(review.draft)
  var lines: list<string> = copy(review.notes)
  const Take = (mark: string, from: list<string>, first: number, last: number) => {
    if last >= first
      extend(lines, from[max([first, 1]) - 1 : last - 1]->mapnew((_, line) => mark .. line))
    endif
  }
  var seen = 0
  for [index, hunk] in items(review.hunks)
    if len(lines) >= MAX_LINES
      add(lines, '… and more')
      break
    elseif hunk.state == 'rejected'
      continue
    endif
    const start = hunk.draft.start
    const first = max([seen + 1, start - CONTEXT_LINES])
    if first > seen + 1 || seen == 0
      add(lines, '@@ line ' .. start .. ' @@')
    endif
    Take(' ', draft, first, start - 1)
    Take('-', base, hunk.base.start, hunk.base.start + min([hunk.base.count, MAX_LINES]) - 1)
    Take('+', draft, start, start + min([hunk.draft.count, MAX_LINES]) - 1)
    const last = start + hunk.draft.count - 1
    const following = get(review.hunks, index + 1, {})
    seen = min([last + CONTEXT_LINES, empty(following) ? len(draft) : following.draft.start - 1])
    Take(' ', draft, last + 1, seen)
    seen = max([seen, last])
  endfor
  return lines
enddef

# Shows a review in a new window, unless the screen has no room for it.
export def Open(review: dict<any>, title: string): bool
  Close()
  const windows = Layout(tabpagenr())
  const origin = win_getid()
  const was_selecting = mode() =~ "^[vV\<C-V>]"
  try
    execute 'noautocmd keepalt botright ' .. (&columns >= MIN_COLUMNS_BESIDE ? 'vnew' : 'new')
  catch
    return false
  endtry
  setlocal buftype=nofile bufhidden=wipe noswapfile nobuflisted nowrap nonumber norelativenumber nolist nospell
  setlocal nofoldenable signcolumn=no
  execute 'noautocmd silent keepalt file ' .. fnameescape(names.Buffer(review, 'diff'))
  &l:statusline = ' ' .. substitute(title, '%', '%%', 'g')
  shown = {id: review.id, buffer: bufnr(), windows: windows}
  Put(review)
  # Not the filetype: its plugins and the user's hooks are not for this window.
  &l:syntax = 'diff'
  execute 'autocmd BufWipeout <buffer> ++once Wiped(' .. bufnr() .. ')'
  noautocmd win_gotoid(origin)
  if was_selecting && mode() !~ "^[vV\<C-V>]"
    noautocmd normal! gv
  endif
  return true
enddef

def Put(review: dict<any>)
  setbufvar(shown.buffer, '&modifiable', true)
  silent deletebufline(shown.buffer, 1, '$')
  setbufline(shown.buffer, 1, Lines(review))
  setbufvar(shown.buffer, '&modifiable', false)
  setbufvar(shown.buffer, '&modified', false)
enddef

# Shows a new state of the review.
export def Update(review: dict<any>)
  if Id() == review.id
    Put(review)
  endif
enddef

def Wiped(buffer: number)
  if get(shown, 'buffer', 0) == buffer
    dismissed[shown.id] = true
    shown = {}
    timer_start(0, (_) => OnDismissed())
  endif
enddef

# Closes the window and restores the sizes of the others, unless the user has changed the windows since.
export def Close()
  if empty(shown)
    return
  endif
  const [buffer, windows] = [shown.buffer, shown.windows]
  const was_selecting = mode() =~ "^[vV\<C-V>]"
  shown = {}
  execute 'bwipeout! ' .. buffer
  if was_selecting && mode() !~ "^[vV\<C-V>]"
    noautocmd normal! gv
  endif
  Restore(windows)
enddef

# The windows of a tab with their sizes.
def Layout(tab: number): list<list<number>>
  return gettabinfo(tab)[0].windows->mapnew((_, id) => [id, winwidth(id), winheight(id)])
enddef

def Restore(windows: list<list<number>>)
  const tab = win_id2tabwin(windows[0][0])[0]
  if tab == 0 || Layout(tab)->mapnew((_, window) => window[0]) != mapnew(windows, (_, window) => window[0])
    return
  endif
  # Twice, as winrestcmd() does: a size may only fit after another was set.
  for _ in range(2)
    for [id, width, height] in windows
      win_execute(id, 'noautocmd vertical resize ' .. width .. ' | noautocmd resize ' .. height)
    endfor
  endfor
enddef
