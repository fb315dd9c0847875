vim9script
# Shows files that an agent wants to show, without taking the focus.

import './bridge.vim'

# The window that was opened for this; the next file is shown there too, unless the user went there.
var window = 0

export def Listen()
  bridge.On('file/show', Show)
enddef

export def Show(target: dict<any>)
  const current = win_getid()
  var place = bufwinid(bufnr('^' .. escape(target.path, '\*?[{') .. '$'))
  if place < 0
    place = Open(target.path, current)
  endif
  if has_key(target, 'line') && place != current
    win_execute(place, printf('call cursor(%d, 1)', target.line))
  endif
enddef

def Open(path: string, current: number): number
  const is_reusable = window != current && win_id2win(window) > 0
    && (&hidden || !getbufvar(winbufnr(window), '&modified'))
  if is_reusable
    win_execute(window, 'edit ' .. fnameescape(path))
  else
    execute 'belowright split ' .. fnameescape(path)
    window = win_getid()
    win_gotoid(current)
  endif
  return window
enddef
