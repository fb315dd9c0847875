;;; context-tests.el --- Selections and buffers  -*- lexical-binding: t; -*-

;;; Code:

(require 'alongside-context)
(require 'cl-lib)
(require 'ert)
(require 'json)
(require 'rect)

(defvar evil-state)

(defmacro alongside-tests--in-text (&rest body)
  "Run BODY in a buffer with some lines."
  `(with-temp-buffer
     (transient-mark-mode 1)
     (insert (propertize "one\ntwo\nthree\n" 'face 'bold))
     (goto-char (point-min))
     ,@body))

(ert-deftest alongside-context-only-the-active-region-is-selected ()
  (alongside-tests--in-text
   (should-not (alongside-context--selection))
   (push-mark (point) t t)
   (should-not (alongside-context--selection))
   (goto-char 6)
   (should (equal-including-properties "one\nt" (alongside-context--selection)))
   (deactivate-mark)
   (should-not (alongside-context--selection))))

(ert-deftest alongside-context-rectangle-is-selected ()
  (alongside-tests--in-text
   (goto-char 2)
   (push-mark (point) t t)
   (rectangle-mark-mode 1)
   (goto-char 12)
   (should (equal-including-properties "ne\nwo\nhr" (alongside-context--selection)))))

(ert-deftest alongside-context-evil-selection-includes-the-cursor ()
  (alongside-tests--in-text
   (let ((evil-state 'visual) (range '(1 4 inclusive :expanded t)))
     (cl-letf (((symbol-function 'evil-visual-range) (lambda () range)))
       (should (equal "one" (alongside-context--selection)))
       (setq range '(2 12 block :expanded t))
       (should (equal "ne\nwo\nhr" (alongside-context--selection)))))))

(ert-deftest alongside-context-region-is-reported-before-it-is-sent ()
  (let (sent alongside-context--focused alongside-context--reported)
    (cl-letf (((symbol-function 'alongside-bridge-notify)
               (lambda (&rest message) (push message sent)))
              ((symbol-function 'alongside-bridge-request)
               (lambda (method _parameters callback)
                 (push method sent)
                 (funcall callback nil '(:agent (:name "Claude Code"))))))
      (alongside-tests--in-text
       (rename-buffer "a.txt" t)
       (setq buffer-file-name "/tmp/a.txt")
       (push-mark 5 t t)
       (goto-char 8)
       (alongside-send-selection)
       (should (equal "agent/mention" (nth 0 sent)))
       (should (equal "two" (plist-get (cdr (nth 1 sent)) :selectedText)))
       (setq buffer-file-name nil)
       (should-error (alongside-send-selection) :type 'user-error)))))

(defmacro alongside-tests--with-messages (messages &rest body)
  "Run BODY with the messages to the user in MESSAGES."
  (declare (indent 1))
  `(let* (,messages)
     (cl-letf (((symbol-function 'alongside-message)
                (lambda (&rest arguments)
                  (push (apply #'format-message arguments) ,messages))))
       ,@body)))

(ert-deftest alongside-context-selection-over-the-limit-is-cut-and-reported-once ()
  (let ((alongside-context--warned-of-selection nil))
    (alongside-tests--with-messages messages
      (with-temp-buffer
        (transient-mark-mode 1)
        (insert "a" (make-string 100000 ?ü))
        (push-mark (point-min) t t)
        (dotimes (_ 2)
          (should (equal (concat "a" (make-string 8191 ?ü))
                         (alongside-context--selection)))))
      (should (equal '("the selection is longer than 16 KiB; agents see its first 16 KiB")
                     messages)))))

(ert-deftest alongside-context-buffer-over-the-limit-is-reported-once-and-not-sent ()
  (let (sent)
    (alongside-tests--with-messages messages
      (cl-letf (((symbol-function 'alongside-bridge-notify)
                 (lambda (&rest message) (push message sent))))
        (with-temp-buffer
          (setq alongside-context--path "/tmp/large.txt")
          (insert "small")
          (alongside-context--report-unsaved (current-buffer))
          (should (equal '(("context/buffer" :path "/tmp/large.txt" :text "small")) sent))
          (dotimes (_ 2)
            (insert (make-string alongside-context--max-buffer-bytes ?a))
            (alongside-context--report-unsaved (current-buffer)))
          (should (equal '("context/buffer" :path "/tmp/large.txt") (car sent)))
          (should (= 2 (length sent)))))
      (should (= 1 (length messages)))
      (should (string-prefix-p "/tmp/large.txt is larger than 8 MiB" (car messages))))))

(ert-deftest alongside-context-remote-files-have-no-path ()
  (with-temp-buffer
    (should-not (alongside-context--path-of (current-buffer)))
    (rename-buffer "a name")
    (setq buffer-file-name "/ssh:nowhere:/a.txt")
    (should-not (alongside-context--path-of (current-buffer)))
    (setq buffer-file-name "/:/a/b c$.txt")
    (should (equal "/a/b c$.txt" (alongside-context--path-of (current-buffer))))
    (setq buffer-file-name nil)))

(ert-deftest alongside-context-file-of-an-agent-is-shown-without-the-focus ()
  (let ((file (make-temp-file "alongside-test" nil ".txt" "one\ntwo\nthree\n"))
        (selected (selected-window)))
    (unwind-protect
        (save-window-excursion
          (alongside-bridge--handle-line
           (json-encode `(:method "file/show" :params (:path ,file :line 3))))
          (should (eq selected (selected-window)))
          (let ((window (get-buffer-window (get-file-buffer file))))
            (should (window-live-p window))
            (with-current-buffer (window-buffer window)
              (should (= 3 (line-number-at-pos (window-point window)))))))
      (when-let ((buffer (get-file-buffer file)))
        (kill-buffer buffer))
      (delete-file file))))

(provide 'context-tests)
;;; context-tests.el ends here
