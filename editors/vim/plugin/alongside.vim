" Puts terminal coding agents alongside Vim 9. See :help alongside.
if exists('g:loaded_alongside') || v:version < 900 || !has('channel') || !has('job') || !has('diff') || !has('timers')
      \ || !has('popupwin')
  finish
endif
let g:loaded_alongside = 1

command! AlongsideStart call alongside#Start()
command! AlongsideStop call alongside#Stop()
command! AlongsideReview call alongside#Review()
command! -bang AlongsideAccept call alongside#Accept(<bang>0)
command! -nargs=* AlongsideReject call alongside#Reject(<q-args>)
command! -range AlongsideSend call alongside#Send(<range>, <line1>, <line2>)
command! AlongsideLog call alongside#Log()

if get(g:, 'alongside_autostart', 1)
  " Loaded late, by :packadd or a plugin manager.
  if v:vim_did_enter
    call alongside#Start()
  else
    autocmd VimEnter * ++once call alongside#Start()
  endif
endif
