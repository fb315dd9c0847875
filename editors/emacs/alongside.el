;;; alongside.el --- Terminal coding agents alongside your editor  -*- lexical-binding: t; -*-

;; Author: The alongside developers
;; Version: 0.1.0
;; URL: https://example.com/alongside
;; Package-Requires: ((emacs "28.2"))
;; Keywords: tools, convenience
;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; With `alongside-mode', Gemini CLI and Qwen Code see your current file,
;; cursor and region, and you review every change they propose in an Ediff
;; session.
;;
;; Requires the `alongside' program.  README.md next to this file is the
;; manual; M-x alongside-doctor checks the setup.

;;; Code:

(require 'alongside-bridge)
(require 'alongside-context)
(require 'alongside-diagnostics)
(require 'alongside-preview)
(require 'alongside-review)

(defvar alongside-mode)
(autoload 'alongside-list-reviews "alongside-list" nil t)
(autoload 'alongside-doctor "alongside-doctor" nil t)

;;;###autoload (autoload 'alongside-command-map "alongside" nil nil 'keymap)
(defvar alongside-command-map
  (let ((map (make-sparse-keymap)))
    (define-key map "r" #'alongside-review)
    (define-key map "l" #'alongside-list-reviews)
    (define-key map "a" #'alongside-accept)
    (define-key map "k" #'alongside-reject)
    (define-key map "d" #'alongside-doctor)
    map)
  "Keymap of the commands, for a prefix key of your choice.")
(fset 'alongside-command-map alongside-command-map)

(defface alongside-pending '((t :inherit warning))
  "Face for the number of pending changes in the mode line."
  :group 'alongside)

(defvar alongside-mode-line-map
  (let ((map (make-sparse-keymap)))
    (define-key map [mode-line mouse-1] #'alongside-review)
    map)
  "Keymap of the number of pending changes in the mode line.")

(defun alongside-mode-line ()
  "Return the text for the mode line.
It has the number of pending changes or else of connected agents."
  (let ((pending (length (alongside-review-pending)))
        (agents (length alongside-bridge-agents)))
    (cond ((> pending 0)
           (concat " "
                   (propertize (format "Alongside[%d to review]" pending)
                               'face 'alongside-pending
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
    ;; In batch mode, the mode itself starts nothing.
    (alongside-bridge-start)))

(defun alongside-stop ()
  "Stop the companion, which rejects everything pending."
  (interactive)
  (alongside-diagnostics-stop)
  (alongside-context-stop)
  (alongside-review-forget)
  (alongside-bridge-stop))

(defun alongside--ready ()
  "Report everything to a companion that has just started."
  (alongside-context-start)
  (alongside-diagnostics-start)
  (alongside-review-refresh))

(defvar alongside-mode-map (make-sparse-keymap)
  "Keymap of `alongside-mode': only `alongside-review-key'.")

(defun alongside--bind-key ()
  "Bind `alongside-review-key' unless it has another binding."
  (setcdr alongside-mode-map nil)
  (when (and alongside-review-key
             (not (global-key-binding (kbd alongside-review-key))))
    (define-key alongside-mode-map (kbd alongside-review-key) #'alongside-review-next)))

;;;###autoload
(define-minor-mode alongside-mode
  "Put terminal coding agents alongside Emacs.
A companion starts with Emacs and stops with it.  Agents that
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
        (advice-remove 'restart-emacs #'alongside-bridge--restart)
        (alongside-stop))
    (alongside--bind-key)
    (alongside-review-listen)
    (add-hook 'alongside-bridge-ready-hook #'alongside--ready)
    (add-hook 'kill-emacs-hook #'alongside-bridge-stop)
    (advice-add 'restart-emacs :around #'alongside-bridge--restart)
    (cond (noninteractive)
          ;; The files named at startup are open by then.
          ((not after-init-time)
           (add-hook 'emacs-startup-hook #'alongside-bridge-start))
          (t (alongside-bridge-start)))))

(provide 'alongside)
;;; alongside.el ends here
