;;; alongside-preview.el --- Show a change to the side  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; How a pending change appears by itself: the option `alongside-open'.  The
;; preview is a read-only diff in a window to the side.  It never takes the
;; focus, and closing it decides nothing.

;;; Code:

(require 'alongside-bridge)
(require 'alongside-review-view)
(require 'alongside-text)
(require 'diff-mode)

(defvar alongside-mode-map)
(declare-function alongside-accept "alongside-review" (&optional even-if-empty))
(declare-function alongside-reject "alongside-review" (&optional reason))
(declare-function alongside-review-next "alongside-review" ())
(declare-function alongside-review-open "alongside-review" (id))

(defcustom alongside-open 'auto
  "How a proposed change appears.
With `auto', as with `view' if a terminal of Emacs is on the
screen or you have not typed for two seconds, otherwise as with
`notify'."
  :type '(choice (const :tag "As is least disturbing" auto)
                 (const :tag "A message and the mode line" notify)
                 (const :tag "A diff to the side, without the focus" view)
                 (const :tag "The review, with the focus" focus))
  :group 'alongside)

(defcustom alongside-review-key "<f8>"
  "The key of `alongside-review-next' in every buffer; nil for none.
It is not used if it has another binding when `alongside-mode' is
enabled."
  :type '(choice (const :tag "None" nil) string)
  :group 'alongside)

(defconst alongside-preview--quiet-seconds 2
  "After this long without a key, a window that opens does not disturb.")
(defconst alongside-preview--context 3
  "The number of unchanged lines around a hunk.")
(defconst alongside-preview--max-lines 2000
  "Longer diffs are cut: the review has the rest.")
(defconst alongside-preview--min-columns 120
  "With fewer columns the window is below.")

(defvar alongside-preview--buffer nil
  "The buffer of the preview.")
(defvar alongside-preview--dismissed nil
  "The reviews whose preview the user closed.")
(defvar-local alongside-preview--id nil
  "The review in this preview.")

(defun alongside-preview-id ()
  "Return the review in the preview, or nil."
  (and (buffer-live-p alongside-preview--buffer)
       (buffer-local-value 'alongside-preview--id alongside-preview--buffer)))

(defun alongside-preview-here ()
  "Return the review in the preview if that is the current buffer."
  (and (eq (current-buffer) alongside-preview--buffer) alongside-preview--id))

;;;; The diff

(defun alongside-preview--text-lines (text)
  "Return the lines of TEXT as a vector."
  (vconcat (split-string (string-remove-suffix "\n" (car (alongside-text-split text)))
                         "\n")))

(defun alongside-preview--lines (review)
  "Return the differences between the file and the draft of REVIEW."
  (let ((base (alongside-preview--text-lines (or (plist-get review :base) "")))
        (draft (alongside-preview--text-lines (plist-get review :draft)))
        (hunks (plist-get review :hunks))
        (lines (reverse (plist-get review :notes)))
        (seen 0))
    (cl-flet ((take (mark face from first last)
                (cl-loop for number from (max first 1) to (min last (length from))
                         do (push (propertize (concat mark (aref from (1- number)))
                                              'face face)
                                  lines))))
      (while (and hunks (< (length lines) alongside-preview--max-lines))
        (let* ((hunk (pop hunks))
               (old (plist-get hunk :base))
               (new (plist-get hunk :draft))
               (start (plist-get new :start))
               (last (+ start (plist-get new :count) -1))
               (first (max (1+ seen) (- start alongside-preview--context))))
          (unless (equal (plist-get hunk :state) "rejected")
            (when (or (zerop seen) (> first (1+ seen)))
              (push (propertize (format "@@ line %d @@" start) 'face 'diff-hunk-header)
                    lines))
            (take " " 'diff-context draft first (1- start))
            (take "-" 'diff-removed base (plist-get old :start)
                  (+ (plist-get old :start) -1
                     (min (plist-get old :count) alongside-preview--max-lines)))
            (take "+" 'diff-added draft start
                  (min last (+ start alongside-preview--max-lines)))
            (setq seen (min (+ last alongside-preview--context)
                            (if hunks
                                (1- (plist-get (plist-get (car hunks) :draft) :start))
                              (length draft))))
            (take " " 'diff-context draft (1+ last) seen)
            (setq seen (max seen last))))))
    (when hunks
      (push "… and more" lines))
    (nreverse lines)))

(defun alongside-preview--put (review)
  "Show the differences of REVIEW in the preview."
  (with-current-buffer alongside-preview--buffer
    (let ((inhibit-read-only t))
      (erase-buffer)
      (insert (string-join (alongside-preview--lines review) "\n") "\n")
      (goto-char (point-min)))))

;;;; The window

(defvar alongside-preview-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'alongside-review-next)
    (define-key map (kbd "C-c C-c") #'alongside-accept)
    (define-key map (kbd "C-c C-k") #'alongside-reject)
    (define-key map "q" #'kill-buffer-and-window)
    map)
  "Keymap of `alongside-preview-mode'.")

(define-derived-mode alongside-preview-mode special-mode "Change"
  "Major mode for the preview of a pending change.
\\{alongside-preview-mode-map}"
  (setq truncate-lines t)
  (add-hook 'kill-buffer-hook #'alongside-preview--killed nil t))

(defun alongside-preview--killed ()
  "Note that the user closed the preview."
  (when (eq (current-buffer) alongside-preview--buffer)
    (push alongside-preview--id alongside-preview--dismissed)
    (setq alongside-preview--buffer nil)))

(defun alongside-preview--window ()
  "Return a new window to the side, or nil if there is no room."
  (ignore-errors
    (let ((window-min-width 10)
          (beside (>= (frame-width) alongside-preview--min-columns)))
      (split-window (window-main-window) nil (if beside 'right 'below)))))

(defun alongside-preview--open (review)
  "Show REVIEW in a window to the side, or a message if there is no room."
  (alongside-preview-close)
  (let ((window (alongside-preview--window))
        (name (file-name-nondirectory (plist-get review :path))))
    (if (not window)
        (alongside-preview--announce review)
      (setq alongside-preview--buffer (generate-new-buffer (format "*diff: %s*" name)))
      (set-window-buffer window alongside-preview--buffer)
      (with-current-buffer alongside-preview--buffer
        (alongside-preview-mode)
        (setq alongside-preview--id (plist-get review :id)
              header-line-format
              (string-replace "%" "%%" (concat " " (alongside-review--describe review)
                                               " · " (alongside-preview-hint)))))
      (alongside-preview--put review))))

(defun alongside-preview-close ()
  "Close the preview."
  (let ((buffer alongside-preview--buffer))
    (setq alongside-preview--buffer nil)
    (when (buffer-live-p buffer)
      (dolist (window (get-buffer-window-list buffer nil t))
        (ignore-errors (delete-window window)))
      (kill-buffer buffer))))

;;;; When it opens

(defun alongside-preview-hint ()
  "Return the keys that open a review."
  (if-let ((key (where-is-internal 'alongside-review-next (list alongside-mode-map) t)))
      (key-description key)
    (substitute-command-keys "\\[alongside-review]")))

(defun alongside-preview--announce (review)
  "Show a message about REVIEW."
  (alongside-message "%s; review with %s" (alongside-review--describe review)
                     (alongside-preview-hint)))

(defun alongside-preview--terminal-p (window)
  "Return non-nil if a program is running in a terminal in WINDOW."
  (with-current-buffer (window-buffer window)
    (and (derived-mode-p 'term-mode 'vterm-mode 'eat-mode 'shell-mode 'eshell-mode)
         (process-live-p (get-buffer-process (current-buffer))))))

(defun alongside-preview--how ()
  "Return how a change should appear now: `notify', `view' or `focus'."
  (cond ((memq alongside-open '(notify view focus)) alongside-open)
        ;; Terminals are where agents run.
        ((or (seq-some #'alongside-preview--terminal-p (window-list nil 'no-minibuffer))
             (when-let ((idle (current-idle-time)))
               (>= (float-time idle) alongside-preview--quiet-seconds)))
         'view)
        (t 'notify)))

(defun alongside-preview--next-p (id)
  "Return non-nil if the review with ID is pending and nothing is shown."
  (and (assq id alongside-review--pending)
       (null alongside-review--shown)
       (null (alongside-preview-id))))

(defun alongside-preview--when-free (function)
  "Call FUNCTION soon, but not while the minibuffer asks something."
  (if (not (active-minibuffer-window))
      ;; Not from within a process filter.
      (run-at-time 0 nil function)
    (letrec ((retry (lambda ()
                      (remove-hook 'minibuffer-exit-hook retry)
                      ;; It is still active now.
                      (run-at-time 0 nil #'alongside-preview--when-free function))))
      (add-hook 'minibuffer-exit-hook retry))))

(defun alongside-preview--show (id)
  "Show the review with ID to the side, unless something else is shown."
  (when (alongside-preview--next-p id)
    (alongside-bridge-request
     "review/get" (list :review id)
     (lambda (problem review)
       (unless problem
         (alongside-preview--when-free
          (lambda ()
            (when (alongside-preview--next-p id)
              (alongside-preview--open review)))))))))

(defun alongside-preview-present (review)
  "Show REVIEW, a new one, according to `alongside-open'.
Only one is shown at a time; the mode line counts all."
  (let ((how (alongside-preview--how))
        (id (plist-get review :id)))
    (cond ((or (eq how 'notify) (not (alongside-preview--next-p id)))
           (alongside-preview--announce review))
          ((eq how 'view) (alongside-preview--show id))
          (t (alongside-preview--when-free
              (lambda ()
                (when (alongside-preview--next-p id)
                  (alongside-review-open id))))))))

(defun alongside-preview--present-next ()
  "Show the oldest pending review that the user has not closed.
Never with the focus: a key that was meant for the last one must
not accept it."
  (unless (eq (alongside-preview--how) 'notify)
    (when-let ((next (seq-find (lambda (id) (not (memq id alongside-preview--dismissed)))
                               (mapcar #'car alongside-review--pending))))
      (alongside-preview--when-free (lambda () (alongside-preview--show next))))))

(defun alongside-preview-update (id)
  "Show the new state of the review with ID."
  (when (eql id (alongside-preview-id))
    (alongside-bridge-request
     "review/get" (list :review id)
     (lambda (problem review)
       (when (and (not problem) (eql id (alongside-preview-id)))
         (alongside-preview--put review))))))

(defun alongside-preview-closed (id)
  "The review with ID was decided or withdrawn."
  (if (not (eql id (alongside-preview-id)))
      (alongside-preview--present-next)
    (alongside-preview--when-free
     (lambda ()
       (when (eql id (alongside-preview-id))
         (alongside-preview-close))
       (alongside-preview--present-next)))))

(defun alongside-preview-refresh ()
  "All pending reviews were fetched again."
  (let ((id (alongside-preview-id)))
    (cond ((null id) (alongside-preview--present-next))
          ((assq id alongside-review--pending) (alongside-preview-update id))
          (t (alongside-preview-closed id)))))

(provide 'alongside-preview)
;;; alongside-preview.el ends here
