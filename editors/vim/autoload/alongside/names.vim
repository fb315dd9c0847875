vim9script
# How files and changes are called.

# The file in a buffer, or an empty string.
export def Path(buffer: number): string
  const name = bufname(buffer)
  if name == '' || getbufvar(buffer, '&buftype') != '' || name =~ '^\a[[:alnum:]+.-]\+://'
    return ''
  endif
  return fnamemodify(name, ':p')
enddef

export def File(path: string): string
  return fnamemodify(path, ':~:.')
enddef

# The name of a buffer: the file comes last, because long names are cut from the left.
export def Buffer(review: dict<any>, kind: string): string
  return printf('alongside://%d/%s (%s)', review.id, substitute(File(review.path), '^/', '', ''), kind)
enddef

export def Describe(review: dict<any>): string
  const conflicts = review.conflicts > 0 ? ', conflicts: ' .. review.conflicts : ''
  return printf('%s (+%d -%d%s), %s', File(review.path), review.size.added, review.size.removed, conflicts,
    join([review.agent, get(review, 'agentVersion', '')])->trim())
enddef
