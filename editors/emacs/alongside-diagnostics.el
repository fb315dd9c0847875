;;; alongside-diagnostics.el --- Report errors and warnings to agents  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; Reports what Flymake and Flycheck show, if they are in use.  Neither is
;; loaded or turned on here.

;;; Code:

(require 'alongside-bridge)
(require 'alongside-context)
(require 'alongside-text)
(require 'cl-lib)

(declare-function flymake-diagnostics "flymake" (&optional beg end))
(declare-function flymake-diagnostic-beg "flymake" (diag))
(declare-function flymake-diagnostic-end "flymake" (diag))
(declare-function flymake-diagnostic-text "flymake" (diag))
(declare-function flymake-diagnostic-type "flymake" (diag))
(declare-function flycheck-error-checker "flycheck" (err))
(declare-function flycheck-error-column "flycheck" (err))
(declare-function flycheck-error-end-column "flycheck" (err))
(declare-function flycheck-error-end-line "flycheck" (err))
(declare-function flycheck-error-id "flycheck" (err))
(declare-function flycheck-error-level "flycheck" (err))
(declare-function flycheck-error-line "flycheck" (err))
(declare-function flycheck-error-message "flycheck" (err))
(defvar flycheck-current-errors)

(defconst alongside-diagnostics--max 200
  "How many are reported of a buffer; the companion has the same limit.")

(defvar-local alongside-diagnostics--reported nil
  "What was reported about this buffer: its path and a vector, or nil.")
(put 'alongside-diagnostics--reported 'permanent-local t)

(defun alongside-diagnostics--severity (name)
  "Return the severity that NAME stands for, a symbol of a checker."
  (let ((name (symbol-name name)))
    (cond ((string-match-p "error" name) "error")
          ((string-match-p "warn" name) "warning")
          (t "information"))))

(defun alongside-diagnostics--position (position)
  "Return the line and character of POSITION."
  (save-excursion
    (goto-char position)
    (list :line (line-number-at-pos)
          :character (1+ (alongside-text-units
                          (buffer-substring-no-properties
                           (line-beginning-position) (point)))))))

(defun alongside-diagnostics--at (line column)
  "Return the position of LINE and COLUMN, both from 1."
  (save-excursion
    (goto-char (point-min))
    (forward-line (1- line))
    (min (+ (point) (1- (max 1 column))) (line-end-position))))

(defun alongside-diagnostics--make (start end level message &rest more)
  "Return a diagnostic from START to END with LEVEL, MESSAGE and MORE.
MORE is a plist, of which nil values are skipped."
  (append
   (list :start (alongside-diagnostics--position start)
         :end (alongside-diagnostics--position (max start end))
         :severity (alongside-diagnostics--severity level)
         :message (substring-no-properties message))
   (cl-loop for (key value) on more by #'cddr
            when value append (list key (format "%s" value)))))

(defun alongside-diagnostics--flymake ()
  "Return the diagnostics of Flymake in the current buffer."
  (when (bound-and-true-p flymake-mode)
    (mapcar (lambda (found)
              (let ((start (or (flymake-diagnostic-beg found) (point-min))))
                (alongside-diagnostics--make
                 start (or (flymake-diagnostic-end found) start)
                 (flymake-diagnostic-type found) (flymake-diagnostic-text found))))
            (flymake-diagnostics))))

(defun alongside-diagnostics--flycheck ()
  "Return the diagnostics of Flycheck in the current buffer."
  (when (bound-and-true-p flycheck-mode)
    (mapcar (lambda (found)
              (let* ((line (or (flycheck-error-line found) 1))
                     (column (or (flycheck-error-column found) 1))
                     (end-line (or (flycheck-error-end-line found) line)))
                (alongside-diagnostics--make
                 (alongside-diagnostics--at line column)
                 (alongside-diagnostics--at
                  end-line (or (flycheck-error-end-column found) column))
                 (flycheck-error-level found) (or (flycheck-error-message found) "")
                 :source (flycheck-error-checker found)
                 :code (flycheck-error-id found))))
            flycheck-current-errors)))

(defun alongside-diagnostics--of-buffer ()
  "Return the diagnostics of the current buffer, a vector."
  (save-restriction
    (widen)
    (let ((found (append (alongside-diagnostics--flymake)
                         (alongside-diagnostics--flycheck))))
      (vconcat
       (seq-take (if (> (length found) alongside-diagnostics--max)
                     (seq-sort-by (lambda (one)
                                    (pcase (plist-get one :severity)
                                      ("error" 0)
                                      ("warning" 1)
                                      (_ 2)))
                                  #'< found)
                   found)
                 alongside-diagnostics--max)))))

(defun alongside-diagnostics--report (buffer)
  "Report the diagnostics of BUFFER, unless they are the same as before."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (when-let ((path alongside-context--path))
        (let ((now (cons path (alongside-diagnostics--of-buffer))))
          (unless (equal now (or alongside-diagnostics--reported (cons path [])))
            (alongside-diagnostics--clear path)
            (setq alongside-diagnostics--reported
                  (unless (equal (cdr now) []) now))
            (alongside-bridge-notify "context/diagnostics"
                                     :path path :diagnostics (cdr now))))))))

(defun alongside-diagnostics--clear (&optional path)
  "Report that what was reported is gone, unless it was about PATH."
  (when-let ((before (car alongside-diagnostics--reported)))
    (unless (equal before path)
      (setq alongside-diagnostics--reported nil)
      (alongside-bridge-notify "context/diagnostics"
                               :path before :diagnostics []))))

(defun alongside-diagnostics--touch (&rest _)
  "Note that the current buffer may have other diagnostics now."
  (when alongside-context--path
    (let ((buffer (current-buffer)))
      (alongside-context--soon
       (list 'diagnostics buffer) 0.1
       (lambda () (alongside-diagnostics--report buffer))))))

(defconst alongside-diagnostics--hooks
  '((flymake-mode-hook . alongside-diagnostics--touch)
    (flycheck-mode-hook . alongside-diagnostics--touch)
    (flycheck-after-syntax-check-hook . alongside-diagnostics--touch)
    (kill-buffer-hook . alongside-diagnostics--clear))
  "Hooks, and what is called from them.")

(defun alongside-diagnostics-start ()
  "Report everything, then every change."
  (alongside-diagnostics-stop)
  (pcase-dolist (`(,hook . ,function) alongside-diagnostics--hooks)
    (add-hook hook function))
  ;; Flymake has no hook for this.
  (advice-add 'flymake--handle-report :after #'alongside-diagnostics--touch)
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (alongside-diagnostics--touch))))

(defun alongside-diagnostics-stop ()
  "Stop reporting."
  (pcase-dolist (`(,hook . ,function) alongside-diagnostics--hooks)
    (remove-hook hook function))
  (advice-remove 'flymake--handle-report #'alongside-diagnostics--touch)
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (kill-local-variable 'alongside-diagnostics--reported))))

(provide 'alongside-diagnostics)
;;; alongside-diagnostics.el ends here
