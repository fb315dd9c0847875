vim9script
# The changes that agents propose: a list of the pending ones, and a diff tab for one of them.

import './bridge.vim'
import './names.vim'
import './opening.vim'
import './preview.vim'
import './text.vim'

# The status words of every front end, by the wire value of `outcome`.
const OUTCOMES = {
  closedByAgent: 'closed by the agent',
  orphaned: 'dropped because the agent disconnected',
  shutDown: 'rejected because the companion was shutting down',
}

# By id.
var reviews: dict<dict<any>> = {}
# The review in the diff tab:
#   id, path, revision, base, proposal
#   draft       the draft that the companion has
#   file        the buffer with the base
#   buffer      the buffer with the draft
#   sharing     how many edits the companion has not confirmed
#   is_stale    whether an update came while there were unconfirmed edits
#   is_written  whether the user accepted by writing
#   is_closed
var view: dict<any> = {}

export def Listen()
  opening.Start({
    Pending: Pending,
    IsPending: (id) => has_key(reviews, id),
    OpenId: () => get(view, 'id', 0),
    Open: Open,
  })
  bridge.On('review/opened', (review) => {
    reviews[review.id] = review
    opening.Present(review)
  })
  bridge.On('review/changed', (review) => {
    reviews[review.id] = review
    Update(review.id)
  })
  bridge.On('review/edited', (edited) => Update(edited.review))
  bridge.On('review/rebased', (rebased) => {
    Update(rebased.review)
    if rebased.conflicts > 0
      bridge.Message('the file changed in the same place as a pending change; check the draft')
    endif
  })
  bridge.On('review/closed', (closed) => OnClosed(closed))
  bridge.On('problems/changed', (now) => {
    for problem in now.problems
      bridge.Message(problem)
    endfor
  })
  bridge.On('resync', (_) => Refresh())
enddef

# Fetches all pending reviews: after a restart, and when notifications were missed.
export def Refresh()
  bridge.Request('review/list', {}, (response) => {
    if has_key(response, 'error')
      return
    endif
    reviews = {}
    for review in response.result
      reviews[review.id] = review
    endfor
    if !empty(view)
      if has_key(reviews, view.id)
        Update(view.id)
      else
        Hide()
      endif
    endif
    opening.Refresh()
  })
enddef

# The pending reviews, oldest first.
def Pending(): list<dict<any>>
  return sort(values(reviews), (one, other) => one.id - other.id)
enddef

# Opens the pending change, or asks which one if there are several.
export def Choose()
  const listed = Pending()
  if !empty(view)
    if IsHere()
      bridge.Message('accept or reject the open change first')
    else
      win_gotoid(win_findbuf(view.buffer)[0])
    endif
    return
  elseif empty(listed)
    bridge.Message('no pending changes')
    return
  endif
  var choice = 1
  if len(listed) > 1
    choice = inputlist(['Pending changes:'] + mapnew(listed, (index, review) => (index + 1) .. ' ' .. names.Describe(review)))
  endif
  if choice >= 1 && choice <= len(listed)
    Open(listed[choice - 1].id)
  endif
enddef

# What the key does: goes to the open change, to the one to the side or to the oldest pending one; from there to the next.
export def Next()
  const listed = Pending()
  if !empty(view) && !IsHere()
    win_gotoid(win_findbuf(view.buffer)[0])
  elseif empty(listed)
    bridge.Message('no pending changes')
  elseif empty(view)
    Open(preview.Id() > 0 ? preview.Id() : listed[0].id)
  else
    const after = filter(copy(listed), (_, review) => review.id > view.id)
    const next = empty(after) ? listed[0].id : after[0].id
    if next == view.id
      bridge.Message('no other pending changes')
    else
      # It stays pending, with the edits made so far.
      Share()
      Hide()
      Open(next)
    endif
  endif
enddef

def IsHere(): bool
  return bufwinnr(view.buffer) > 0
enddef

def Open(id: number)
  bridge.Request('review/get', {review: id}, (response) => {
    if has_key(response, 'error')
      bridge.Message(response.error.message)
    elseif empty(view)
      Show(response.result)
    endif
  })
enddef

# The diff tab

def Show(review: dict<any>)
  view = {id: review.id, path: review.path, revision: review.revision, base: get(review, 'base', ''),
    proposal: review.proposal, draft: review.draft, sharing: 0, is_stale: false, is_written: false, is_closed: false}
  opening.Opened()
  # Typed text must not end up in the draft.
  stopinsert
  tabnew
  view.file = Window('nofile', names.Buffer(review, 'file'), view.base)
  setlocal nomodifiable
  rightbelow vnew
  view.buffer = Window('acwrite', names.Buffer(review, 'review'), review.draft)
  autocmd BufWriteCmd <buffer> Written()
  autocmd BufWipeout <buffer> Wiped()
  autocmd TextChanged,InsertLeave <buffer> Edited()
  diffupdate
  # Not `]c`: there is no `:normal` in a terminal, where the user may come from.
  cursor(empty(review.hunks) ? 1 : review.hunks[0].draft.start, 1)
  if get(g:, 'alongside_keys', 1)
    nnoremap <buffer> <LocalLeader>a <ScriptCmd>DecideHunk(true)<CR>
    nnoremap <buffer> <LocalLeader>r <ScriptCmd>DecideHunk(false)<CR>
    nnoremap <buffer> <LocalLeader>A <ScriptCmd>Accept(false)<CR>
    nnoremap <buffer> <LocalLeader>R <ScriptCmd>Reject()<CR>
  endif
  for note in review.notes
    bridge.Message(note)
  endfor
enddef

def Window(kind: string, name: string, content: string): number
  &l:buftype = kind
  setlocal bufhidden=wipe noswapfile
  execute 'silent file ' .. fnameescape(name)
  text.Put(bufnr(), content)
  &l:syntax = SyntaxOf(view.path)
  diffthis
  return bufnr()
enddef

# The syntax of a file with this name. Its filetype plugins and the user's hooks are not for a review.
def SyntaxOf(path: string): string
  const ignored = &eventignore
  set eventignore+=FileType,Syntax
  execute 'silent! doautocmd <nomodeline> filetypedetect BufRead ' .. fnameescape(path)
  const found = &l:filetype
  setlocal filetype=
  &eventignore = ignored
  return found
enddef

def Hide()
  if !empty(view)
    const buffers = [view.buffer, view.file]
    view.is_closed = true
    view = {}
    for buffer in buffers
      if bufexists(buffer)
        execute 'bwipeout! ' .. buffer
      endif
    endfor
  endif
enddef

# Accepts or rejects the hunk under the cursor and goes to the next.
def DecideHunk(accept: bool)
  if !accept
    silent! diffget
  endif
  silent! normal! ]c
enddef

# Drafts

# What would be accepted now.
def Draft(shown: dict<any>): string
  const draft = text.Of(shown.buffer)
  const visible = text.Visible(draft)
  # With every hunk rejected, the line endings and the end of the file are the file's too.
  return visible ==# text.Visible(shown.base) && visible !=# text.Visible(shown.proposal) ? shown.base : draft
enddef

def Edited()
  if !empty(view)
    view.is_written = false
    Share()
  endif
enddef

# Sends the draft, so that it is what gets accepted in the agent's terminal too.
def Share()
  final shown = view
  const draft = Draft(shown)
  if draft ==# shown.draft
    return
  endif
  shown.draft = draft
  ++shown.sharing
  bridge.Request('review/edit', {review: shown.id, content: draft}, (_) => {
    --shown.sharing
    if shown.sharing == 0 && shown.is_stale
      Update(shown.id)
    endif
  })
enddef

# Shows what changed in a review: its file, its draft, or the proposal.
def Update(id: number)
  opening.Update(id)
  if empty(view) || view.id != id
    return
  endif
  final shown = view
  # Unconfirmed edits come after it; their response leads here again.
  shown.is_stale = true
  if shown.sharing > 0
    return
  endif
  bridge.Request('review/get', {review: id}, (response) => {
    if shown.is_closed || shown.sharing > 0 || has_key(response, 'error')
      return
    endif
    const review = response.result
    const is_revised = review.revision != shown.revision
    # Edits in Insert mode are sent when it ends, and stay, unless the agent proposes something else.
    const has_unsent = Draft(shown) !=# shown.draft
    shown.is_stale = has_unsent && !is_revised
    extend(shown, {revision: review.revision, base: get(review, 'base', ''), proposal: review.proposal})
    setbufvar(shown.file, '&modifiable', true)
    text.Put(shown.file, shown.base)
    setbufvar(shown.file, '&modifiable', false)
    if !shown.is_stale
      shown.draft = review.draft
      if Draft(shown) !=# review.draft
        text.Put(shown.buffer, review.draft)
      endif
    endif
    for window in win_findbuf(shown.buffer)[ : 0]
      win_execute(window, 'diffupdate')
    endfor
    if is_revised
      bridge.Message('the agent revised its change to ' .. fnamemodify(shown.path, ':t'))
    endif
  })
enddef

# Decisions

def Written()
  &l:modified = false
  view.is_written = true
  Accept(false)
enddef

def Wiped()
  if !empty(view) && !view.is_closed && v:exiting == v:null
    if !view.is_written
      Decide('review/reject', {})
    endif
    timer_start(0, (_) => Hide())
  endif
enddef

export def Accept(even_if_empty: bool)
  # <bang>0 is a number, which JSON keeps.
  const params = {evenIfEmpty: even_if_empty ? true : false}
  Decide('review/accept', empty(view) ? params : extend({content: Draft(view)}, params))
enddef

# The reason is for the agent, if it can receive one.
export def Reject(reason: string = '')
  Decide('review/reject', empty(reason) ? {} : {reason: reason})
enddef

# Decides about the open change, or the one in the preview if the cursor is there.
def Decide(method: string, params: dict<any>)
  final shown = !empty(view) ? view : preview.IsCurrent() ? {id: preview.Id(), is_closed: true} : {}
  if empty(shown)
    bridge.Message('no change is open; run :AlongsideReview')
    return
  endif
  bridge.Request(method, extend({review: shown.id}, params), (response) => {
    if has_key(response, 'error')
      bridge.Message(response.error.message)
      if !shown.is_closed && bufexists(shown.buffer)
        shown.is_written = false
        setbufvar(shown.buffer, '&modified', true)
      endif
    endif
  })
enddef

def OnClosed(closed: dict<any>)
  if has_key(reviews, closed.review)
    remove(reviews, closed.review)
  endif
  if !empty(view) && view.id == closed.review
    Hide()
  endif
  opening.Close(closed.review)
  bridge.Message(names.File(closed.path) .. ': ' .. get(OUTCOMES, closed.outcome, closed.outcome))
enddef
