" Puts terminal coding agents alongside Vim 9: commands, and the start. See :help alongside.
if exists('g:loaded_alongside') || v:version < 900 || !has('channel') || !has('job') || !has('diff')
  finish
endif
let g:loaded_alongside = 1

command! AlongsideStart call alongside#Start()
command! AlongsideStop call alongside#Stop()
command! AlongsideReview call alongside#Review()
command! -bang AlongsideAccept call alongside#Accept(<bang>0)
command! AlongsideReject call alongside#Reject()

if get(g:, 'alongside_autostart', 1)
  autocmd VimEnter * ++once call alongside#Start()
endif
