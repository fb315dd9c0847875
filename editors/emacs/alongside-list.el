;;; alongside-list.el --- List of pending changes  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: MIT OR Apache-2.0

;;; Commentary:

;; A buffer with a line for each pending change, kept up to date.

;;; Code:

(require 'alongside-bridge)
(require 'alongside-review)
(require 'tabulated-list)

(defconst alongside-list--name "*alongside reviews*"
  "Name of the buffer with the list.")

(defvar alongside-list-mode-map
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map tabulated-list-mode-map)
    (define-key map (kbd "RET") #'alongside-list-open)
    (define-key map "a" #'alongside-list-accept)
    (define-key map "k" #'alongside-list-reject)
    (define-key map "A" #'alongside-list-accept-all)
    (define-key map "K" #'alongside-list-reject-all)
    map)
  "Keymap of `alongside-list-mode'.")

(define-derived-mode alongside-list-mode tabulated-list-mode "Reviews"
  "Major mode for the list of pending changes.
\\{alongside-list-mode-map}"
  (setq tabulated-list-format [("File" 34 t) ("Size" 20 nil) ("Agent" 20 t)]
        tabulated-list-padding 1
        tabulated-list-entries #'alongside-list--entries)
  (tabulated-list-init-header))

(defun alongside-list--entries ()
  "Return a line for each pending change."
  (mapcar (lambda (review)
            (list (plist-get review :id)
                  (vector (alongside-review-name (plist-get review :path))
                          (concat (alongside-review-size review)
                                  (when (plist-get review :newFile) ", new file")
                                  (when (plist-get review :edited) ", edited"))
                          (alongside-review-agent review))))
          (alongside-review-pending)))

(defun alongside-list--refresh ()
  "Update the list."
  (when-let ((buffer (get-buffer alongside-list--name)))
    (with-current-buffer buffer
      (tabulated-list-print t))))

;;;###autoload
(defun alongside-list-reviews ()
  "List every pending change."
  (interactive)
  (let ((buffer (get-buffer-create alongside-list--name)))
    (with-current-buffer buffer
      (unless (derived-mode-p 'alongside-list-mode)
        (alongside-list-mode))
      (tabulated-list-print t))
    (add-hook 'alongside-changed-hook #'alongside-list--refresh)
    (pop-to-buffer buffer)))

(defun alongside-list--here ()
  "Return the id of the review on this line."
  (or (tabulated-list-get-id) (user-error "Alongside: no change on this line")))

(defun alongside-list-open ()
  "Show the change on this line."
  (interactive)
  (alongside-review-open (alongside-list--here)))

(defun alongside-list-accept ()
  "Accept the change on this line, with the edits made so far."
  (interactive)
  (alongside-review-share-all)
  (alongside-review--decide "review/accept" :review (alongside-list--here)))

(defun alongside-list-reject ()
  "Reject the change on this line."
  (interactive)
  (alongside-review--decide "review/reject" :review (alongside-list--here)))

(defun alongside-list--all (method word)
  "Decide every change by this line's agent by METHOD, after asking with WORD."
  (let* ((id (alongside-list--here))
         (review (seq-find (lambda (review) (equal id (plist-get review :id)))
                           (alongside-review-pending))))
    (when (y-or-n-p (format "%s every change by %s? "
                            word (alongside-review-agent review)))
      (let ((refused (plist-get (alongside-bridge-ask
                                 method :session (plist-get review :session))
                                :refused)))
        (when refused
          (alongside-message "changes skipped: %d" (length refused)))))))

(defun alongside-list-accept-all ()
  "Accept every change by this line's agent."
  (interactive)
  (alongside-review-share-all)
  (alongside-list--all "review/acceptAll" "Accept"))

(defun alongside-list-reject-all ()
  "Reject every change by this line's agent."
  (interactive)
  (alongside-list--all "review/rejectAll" "Reject"))

(provide 'alongside-list)
;;; alongside-list.el ends here
