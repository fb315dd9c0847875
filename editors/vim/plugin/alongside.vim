vim9script
# Puts terminal coding agents alongside Vim 9: commands, and the start. See :help alongside.
if exists('g:loaded_alongside') || !has('channel') || !has('job') || !has('diff')
  finish
endif
g:loaded_alongside = 1

import autoload 'alongside.vim'

command! AlongsideStart alongside.Start()
command! AlongsideStop alongside.Stop()
command! AlongsideReview alongside.Review()
command! -bang AlongsideAccept alongside.Accept(<bang>false)
command! AlongsideReject alongside.Reject()

if get(g:, 'alongside_autostart', true)
  autocmd VimEnter * ++once alongside.Start()
endif
