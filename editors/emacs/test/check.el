;;; check.el --- Run the steps of `alongside bridge --check'  -*- lexical-binding: t; -*-

;;; Commentary:

;; Runs in batch mode, with `alongside-command' set to the fake companion.
;; Everything goes through the plugin's own code.

;;; Code:

(require 'alongside)

(let ((directory (getenv "ALONGSIDE_CHECK"))
      decided)
  (switch-to-buffer (find-file-noselect (expand-file-name "open.txt" directory)))
  (insert "not saved")
  (add-hook 'alongside-changed-hook
            (lambda ()
              (dolist (review (alongside-review-pending))
                (let ((id (plist-get review :id))
                      (name (file-name-nondirectory (plist-get review :path))))
                  (unless (memq id decided)
                    (push id decided)
                    ;; Not from within the notification.
                    (run-at-time
                     0.5 nil
                     (lambda ()
                       (save-window-excursion
                         (switch-to-buffer "*scratch*")
                         (run-hooks 'post-command-hook))
                       (alongside-review-open id)
                       (if (equal name "accept.txt")
                           (with-current-buffer (alongside-view-buffer
                                                 (alist-get id alongside-review--shown))
                             (alongside-text-put
                              (current-buffer)
                              (with-temp-buffer
                                (let ((coding-system-for-read 'utf-8-unix))
                                  (insert-file-contents
                                   (expand-file-name name directory)))
                                (buffer-string)))
                             (alongside-accept))
                         (alongside-reject)))))))))
  (alongside-start)
  ;; Exits with the companion.
  (while (alongside-bridge-running-p)
    (accept-process-output nil 0.1)))

;;; check.el ends here
