vim9script
# A line in the corner of the screen for pending changes that are not on it. Unlike a message, it is visible in every mode.

highlight default link AlongsideNotice IncSearch

var popup = 0

# Shows what is pending.
export def Update(pending: list<dict<any>>, hint: string)
  popup_close(popup)
  popup = 0
  if !empty(pending)
    const what = len(pending) == 1 ? fnamemodify(pending[0].path, ':t') .. ' to review' : len(pending) .. ' changes to review'
    const has_tabline = &showtabline == 2 || &showtabline == 1 && tabpagenr('$') > 1
    # In every tab.
    popup = popup_create(' ' .. what .. ': ' .. hint .. ' ', {line: has_tabline ? 2 : 1, col: &columns, pos: 'topright',
      tabpage: -1, highlight: 'AlongsideNotice', wrap: false, zindex: 200})
  endif
  # Nothing else does while a command is typed.
  if mode() =~ '^[ct]'
    redraw
  endif
enddef
