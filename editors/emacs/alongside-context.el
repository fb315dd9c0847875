;;; alongside-context.el --- What agents are told  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; Open files, the one in front, its cursor and region, and the texts that
;; are not saved yet.  Hooks only note that something happened; a timer
;; reports the last state once, so that typing never waits.

;;; Code:

(require 'alongside-bridge)
(require 'alongside-text)

(declare-function evil-visual-range "evil-states" ())
(declare-function extract-rectangle "rect" (start end))

(defconst alongside-context--most-selected 65536
  "The companion cuts a selection itself; this keeps huge ones off the pipe.")

(defconst alongside-context--most-buffered (* 8 1024 1024)
  "Larger buffers count as they are on disk.")

(defconst alongside-context--large (* 512 1024)
  "Unsaved texts of more characters are reported only while nobody types.")

(defvar-local alongside-context--path nil
  "The path under which this buffer was reported as open.")
(put 'alongside-context--path 'permanent-local t)

(defvar-local alongside-context--tick nil
  "The modification count of the unsaved text that was reported.
Nil if none was.")
(put 'alongside-context--tick 'permanent-local t)

(defvar alongside-context--front nil
  "The buffer of the last file that was in front.")
(defvar alongside-context--reported nil
  "What was reported of it.")
(defvar alongside-context--timers nil
  "An alist of what will be reported soon: a key and its timer.")

(defun alongside-context--path-of (buffer)
  "Return the path of the file in BUFFER, or nil.
Files on other machines and buffers that are not for people have
none."
  (let ((name (buffer-file-name (or (buffer-base-buffer buffer) buffer))))
    (and name
         (not (file-remote-p name))
         (not (string-prefix-p " " (buffer-name buffer)))
         (expand-file-name (file-name-unquote name)))))

(defun alongside-context--soon (key seconds action &optional idle)
  "Call ACTION once, SECONDS after the first event of KEY in a burst.
If IDLE is non-nil, wait until nothing was done for that long."
  (unless (assoc key alongside-context--timers)
    (push (cons key
                (funcall
                 (if idle #'run-with-idle-timer #'run-at-time)
                 seconds nil
                 (lambda ()
                   (setq alongside-context--timers
                         (assoc-delete-all key alongside-context--timers))
                   (funcall action))))
          alongside-context--timers)))

(defun alongside-context-reported-p ()
  "Whether nothing that happened is still to be reported."
  (null alongside-context--timers))

;;;; The file in front

(defun alongside-context--region ()
  "Return what is selected as (START END), (START END block), or nil."
  (cond
   ;; Evil's region ends before the character that the cursor is on.
   ((and (eq (bound-and-true-p evil-state) 'visual) (fboundp 'evil-visual-range))
    (pcase-let ((`(,start ,end ,type . ,_) (evil-visual-range)))
      `(,start ,end ,@(and (eq type 'block) '(block)))))
   ((use-region-p)
    `(,(region-beginning) ,(region-end)
      ,@(and (bound-and-true-p rectangle-mark-mode) '(block))))))

(defun alongside-context--selection ()
  "Return the text that is selected, or nil."
  (pcase (alongside-context--region)
    (`(,start ,end block)
     (mapconcat #'substring-no-properties (extract-rectangle start end) "\n"))
    (`(,start ,end)
     (buffer-substring-no-properties
      start (min end (+ start alongside-context--most-selected))))))

(defun alongside-context--report-focus ()
  "Report the file in front, its cursor and its region."
  (when (buffer-live-p alongside-context--front)
    (with-current-buffer alongside-context--front
      (when-let ((path (alongside-context--path-of (current-buffer))))
        (let* ((window (selected-window))
               (point (if (eq (window-buffer window) (current-buffer))
                          (window-point window)
                        (point)))
               (selection (alongside-context--selection))
               (state (list path point selection (buffer-chars-modified-tick))))
          (unless (equal state alongside-context--reported)
            (setq alongside-context--reported state)
            (save-excursion
              (save-restriction
                (widen)
                (goto-char point)
                (alongside-bridge-notify
                 "context/focus"
                 :path path
                 :cursor (list :line (line-number-at-pos)
                               :character (1+ (alongside-text-units
                                               (buffer-substring-no-properties
                                                (line-beginning-position) point))))
                 :selectedText selection)))))))))

(defun alongside-context--look (&rest _)
  "Note what is in front.
Where that is no file, in a terminal or the minibuffer for one,
the last file and its region stay, and only that this Emacs is used
is told: agents that are started elsewhere find the editor that was
used last."
  (let ((buffer (window-buffer (selected-window))))
    (if (not (buffer-file-name (or (buffer-base-buffer buffer) buffer)))
        (alongside-context--soon
         'window 0.02 (lambda () (alongside-bridge-notify "window/focus")))
      (setq alongside-context--front buffer)
      (alongside-context--soon 'focus 0.02 #'alongside-context--report-focus))))

;;;; Open files

(defun alongside-context--open (&optional buffer)
  "Report BUFFER, or the current one, as open if it visits a file."
  (with-current-buffer (or buffer (current-buffer))
    (let ((path (alongside-context--path-of (current-buffer))))
      (unless (equal path alongside-context--path)
        (alongside-context--close)
        (setq alongside-context--path path)
        (when path
          (alongside-bridge-notify "context/open" :path path)
          (alongside-context--soon
           'move 0.1 (lambda () (alongside-bridge-opened path))))))))

(defun alongside-context--close ()
  "Report the current buffer's file as closed, if no other visits it."
  (when-let ((path alongside-context--path))
    (setq alongside-context--path nil)
    (when alongside-context--tick
      (setq alongside-context--tick nil)
      (alongside-bridge-notify "context/buffer" :path path))
    (unless (seq-some (lambda (buffer)
                        (equal path (buffer-local-value
                                     'alongside-context--path buffer)))
                      (buffer-list))
      (alongside-bridge-notify "context/close" :path path)
      (when (equal path (car alongside-context--reported))
        (setq alongside-context--reported nil)))))

;;;; Unsaved texts

(defun alongside-context--report-unsaved (buffer)
  "Report the unsaved text of BUFFER, or that there is none any more."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (when-let ((path alongside-context--path))
        (let* ((tick (buffer-chars-modified-tick))
               (text (and (buffer-modified-p)
                          (<= (buffer-size) alongside-context--most-buffered)
                          (not (eql tick alongside-context--tick))
                          (alongside-text-of buffer))))
          (cond (text
                 (setq alongside-context--tick tick)
                 (alongside-bridge-notify "context/buffer" :path path :text text))
                ((and alongside-context--tick
                      (not (and (buffer-modified-p)
                                (eql tick alongside-context--tick))))
                 (setq alongside-context--tick nil)
                 (alongside-bridge-notify "context/buffer" :path path))))))))

(defun alongside-context--touch (&rest _)
  "Note that the current buffer may be unsaved now."
  (when alongside-context--path
    (let ((buffer (current-buffer))
          (large (> (buffer-size) alongside-context--large)))
      (alongside-context--soon
       buffer (if large 1 0.1)
       (lambda () (alongside-context--report-unsaved buffer))
       large))))

(defun alongside-context--saved ()
  "Note that the current buffer was saved, perhaps for the first time."
  (alongside-context--open)
  (alongside-context--touch)
  (alongside-context--look))

;;;; Start and end

(defconst alongside-context--hooks
  '((find-file-hook . alongside-context--open)
    (after-set-visited-file-name-hook . alongside-context--open)
    (clone-indirect-buffer-hook . alongside-context--open)
    (kill-buffer-hook . alongside-context--close)
    (after-change-functions . alongside-context--touch)
    (after-save-hook . alongside-context--saved)
    (after-revert-hook . alongside-context--saved)
    (post-command-hook . alongside-context--look)
    (window-selection-change-functions . alongside-context--look)
    (window-buffer-change-functions . alongside-context--look))
  "Hooks, and what is called from them.")

(defun alongside-context-start ()
  "Report everything, and from now on every change."
  (alongside-context-stop)
  (pcase-dolist (`(,hook . ,function) alongside-context--hooks)
    (add-hook hook function))
  ;; The one that was used last comes last, and so is the first for agents.
  (dolist (buffer (reverse (buffer-list)))
    (alongside-context--open buffer)
    (with-current-buffer buffer
      (when (and alongside-context--path (buffer-modified-p))
        (alongside-context--touch))))
  (alongside-context--look))

(defun alongside-context-stop ()
  "Report nothing any more."
  (pcase-dolist (`(,hook . ,function) alongside-context--hooks)
    (remove-hook hook function))
  (pcase-dolist (`(,_ . ,timer) alongside-context--timers)
    (cancel-timer timer))
  (setq alongside-context--timers nil
        alongside-context--reported nil)
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (kill-local-variable 'alongside-context--path)
      (kill-local-variable 'alongside-context--tick))))

(provide 'alongside-context)
;;; alongside-context.el ends here
