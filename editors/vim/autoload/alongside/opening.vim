vim9script
# How a pending change appears by itself: g:alongside_open.

import './bridge.vim'
import './names.vim'
import './notice.vim'
import './preview.vim'

# After this long without a key, a window that opens does not disturb.
const QUIET_SECONDS = 2.0

var last_typed: list<any> = []
var has_key = false
# What this needs from the reviews: Pending, IsOpen, OpenId, Open.
var reviews: dict<func> = {}

# Follows the user's typing and maps the key that opens a review.
export def Start(functions: dict<func>)
  reviews = functions
  preview.Start(UpdateNotice)
  augroup alongside_opening
    autocmd!
    autocmd CursorMoved,CursorMovedI,TextChanged,TextChangedI,InsertCharPre,ModeChanged,CmdlineChanged * last_typed = reltime()
    autocmd TabEnter,VimResized,WinClosed * timer_start(0, (_) => UpdateNotice())
  augroup END
  const key = Key()
  if key == ''
    return
  endif
  for map_mode in ['n', 'x', 'i', 't']
    # Perhaps ours, from before the companion was restarted.
    if maparg(key, map_mode) =~# '^$\|alongside#Next'
      execute map_mode .. 'noremap ' .. key .. ' <Cmd>call alongside#Next()<CR>'
      has_key = has_key || map_mode == 'n'
    endif
  endfor
enddef

export def Stop()
  preview.Close()
  notice.Update([], '')
enddef

def Key(): string
  return get(g:, 'alongside_review_key', '<F8>')
enddef

# What to press or run to see a pending change.
def Hint(): string
  return has_key ? Key() : ':AlongsideReview'
enddef

# Whether a program is running in a terminal on the screen. That is where agents run.
def HasTerminal(): bool
  return tabpagebuflist()->indexof((_, buffer) => term_getstatus(buffer) =~# 'running') >= 0
enddef

def How(): string
  const option = get(g:, 'alongside_open', 'auto')
  if index(['notify', 'view', 'focus'], option) >= 0
    return option
  endif
  const is_quiet = empty(last_typed) || reltimefloat(reltime(last_typed)) >= QUIET_SECONDS
  return is_quiet || HasTerminal() ? 'view' : 'notify'
enddef

# Whether a window that opens now would break what the user is doing: typing a command, answering a prompt, choosing a completion.
def IsBusy(): bool
  return mode(1) =~# '^\([cr!]\|no\)' || getcmdwintype() != '' || pumvisible()
enddef

# Calls Action now, or as soon as the user has finished the command.
def WhenFree(Action: func)
  if IsBusy()
    waiting += [Action]
    autocmd alongside_opening ModeChanged,CmdwinLeave,CompleteDone * ++once timer_start(0, (_) => RunWaiting())
  else
    Action()
  endif
enddef

var waiting: list<func> = []

def RunWaiting()
  const actions = waiting
  waiting = []
  for Action in actions
    WhenFree(Action)
  endfor
enddef

def Announce(review: dict<any>)
  bridge.Message(names.Describe(review) .. '; review with ' .. Hint())
enddef

def UpdateNotice()
  const unseen = call(reviews.Pending, [])->filter((_, review) =>
    review.id != call(reviews.OpenId, []) && !(review.id == preview.Id() && preview.IsVisible()))
  notice.Update(bridge.IsRunning() ? unseen : [], Hint())
enddef

# Whether a change is pending and nothing else is shown.
def IsNext(id: number): bool
  return call(reviews.IsPending, [id]) && call(reviews.OpenId, []) == 0 && preview.Id() == 0
enddef

# Shows a change to the side, or a notification if there is no room.
def Show(review: dict<any>)
  bridge.Request('review/get', {review: review.id}, (response) => {
    if has_key(response, 'error') || !IsNext(review.id)
      return
    elseif !preview.Open(response.result, names.Describe(review) .. ', ' .. Hint())
      Announce(review)
    endif
    UpdateNotice()
    redraw
  })
enddef

# Shows a new change as the option says. Only one is shown at a time; the notice counts the others.
export def Present(review: dict<any>)
  const wanted = How()
  if wanted == 'notify' || !IsNext(review.id)
    Announce(review)
  else
    WhenFree(() => {
      if IsNext(review.id)
        if wanted == 'focus'
          call(reviews.Open, [review.id])
        else
          Show(review)
        endif
      endif
    })
  endif
  UpdateNotice()
enddef

# Shows the oldest change that the user has not closed, but never with the focus: a second `:w` must not accept it.
def PresentNext()
  const rest = call(reviews.Pending, [])->filter((_, review) => !preview.IsDismissed(review.id))
  if !empty(rest) && How() != 'notify'
    WhenFree(() => {
      if IsNext(rest[0].id)
        Show(rest[0])
      endif
    })
  endif
  UpdateNotice()
enddef

# A change was edited or revised.
export def Update(id: number)
  if preview.Id() == id
    bridge.Request('review/get', {review: id}, (response) => {
      if !has_key(response, 'error')
        preview.Update(response.result)
      endif
    })
  endif
enddef

# A change was decided or withdrawn.
export def Close(id: number)
  if preview.Id() == id
    preview.Close()
  endif
  PresentNext()
enddef

# The review is in its tab.
export def Opened()
  preview.Close()
  UpdateNotice()
enddef

# All pending changes were fetched again.
export def Refresh()
  const id = preview.Id()
  if id == 0
    PresentNext()
  elseif call(reviews.IsPending, [id])
    Update(id)
  else
    Close(id)
  endif
enddef
