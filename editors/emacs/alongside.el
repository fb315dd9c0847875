;;; alongside.el --- Terminal coding agents alongside Emacs  -*- lexical-binding: t; -*-

;; Version: 0.1.0
;; Package-Requires: ((emacs "28.2"))
;; Keywords: tools, convenience
;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; With `alongside-mode', Gemini CLI and Qwen Code know which file is in
;; front of you, where the cursor is and what you have selected, and every
;; change that they want to make waits for you in an Ediff session.
;;
;; It needs the program `alongside'.  README.md beside this file is the
;; manual; M-x alongside-doctor says whether everything is well.

;;; Code:

(require 'alongside-bridge)
(require 'alongside-context)
(require 'alongside-review)

(defvar alongside-mode)
(autoload 'alongside-list-reviews "alongside-list" nil t)
(autoload 'alongside-doctor "alongside-doctor" nil t)

(defvar alongside-command-map
  (let ((map (make-sparse-keymap)))
    (define-key map "r" #'alongside-review)
    (define-key map "l" #'alongside-list-reviews)
    (define-key map "a" #'alongside-accept)
    (define-key map "k" #'alongside-reject)
    (define-key map "d" #'alongside-doctor)
    map)
  "Commands, to be put on a prefix key of your choice.")
(fset 'alongside-command-map alongside-command-map)

(defface alongside-waiting '((t :inherit warning))
  "Face for the number of pending changes in the mode line."
  :group 'alongside)

(defvar alongside-mode-line-map
  (let ((map (make-sparse-keymap)))
    (define-key map [mode-line mouse-1] #'alongside-review)
    map)
  "What a click on the mode line does.")

(defun alongside-mode-line ()
  "Return the state for the mode line.
That is how many changes wait, or else how many agents are
connected."
  (let ((waiting (length (alongside-review-waiting)))
        (agents (length alongside-bridge-agents)))
    (cond ((> waiting 0)
           (concat " "
                   (propertize (format "Alongside[%d to review]" waiting)
                               'face 'alongside-waiting
                               'help-echo "mouse-1: review pending changes"
                               'mouse-face 'mode-line-highlight
                               'local-map alongside-mode-line-map)))
          ((null alongside-bridge-welcome) " Alongside[off]")
          ((> agents 0) (format " Alongside[%d]" agents))
          (t " Alongside"))))

;;;###autoload
(defun alongside-start ()
  "Start the companion, unless it is running."
  (interactive)
  (if alongside-mode
      (alongside-bridge-start)
    (alongside-mode 1)
    ;; Where nobody looks, the mode starts nothing by itself.
    (alongside-bridge-start)))

(defun alongside-stop ()
  "Stop the companion; pending changes are rejected."
  (interactive)
  (alongside-context-stop)
  (alongside-review-forget)
  (alongside-bridge-stop))

(defun alongside--ready ()
  "Report everything to a companion that has just come up."
  (alongside-context-start)
  (alongside-review-refresh))

;;;###autoload
(define-minor-mode alongside-mode
  "Put terminal coding agents alongside Emacs.
A companion is started with Emacs and ends with it.  Agents that
run in a project whose files are open here, or in a terminal in
Emacs, connect automatically; the first time, run `/ide enable'
in them."
  :global t
  :group 'alongside
  :lighter (:eval (alongside-mode-line))
  (if (not alongside-mode)
      (progn
        (remove-hook 'emacs-startup-hook #'alongside-bridge-start)
        (remove-hook 'alongside-bridge-ready-hook #'alongside--ready)
        (remove-hook 'kill-emacs-hook #'alongside-bridge-stop)
        (alongside-stop))
    (alongside-review-listen)
    (add-hook 'alongside-bridge-ready-hook #'alongside--ready)
    (add-hook 'kill-emacs-hook #'alongside-bridge-stop)
    (cond (noninteractive)
          ;; The files of the command line are open then.
          ((not after-init-time)
           (add-hook 'emacs-startup-hook #'alongside-bridge-start))
          (t (alongside-bridge-start)))))

(provide 'alongside)
;;; alongside.el ends here
