vim9script
# What the commands call; see :help alongside.

import './alongside/bridge.vim'
import './alongside/context.vim'
import './alongside/opening.vim'
import './alongside/reviews.vim'
import './alongside/show.vim'

export def Start()
  reviews.Listen()
  show.Listen()
  bridge.Start(() => {
    context.Start()
    reviews.Refresh()
  })
enddef

export def Stop()
  context.Stop()
  opening.Stop()
  bridge.Stop()
enddef

export def Review()
  reviews.Choose()
enddef

export def Next()
  reviews.Next()
enddef

export def Accept(even_if_empty: bool)
  reviews.Accept(even_if_empty)
enddef

export def Reject(reason: string = '')
  reviews.Reject(reason)
enddef

export def Send(range: number, first: number, last: number)
  context.Send(range > 0, first, last)
enddef

export def Log()
  bridge.ShowLog()
enddef
