;;; diagnostics-tests.el --- Errors and warnings  -*- lexical-binding: t; -*-

;;; Code:

(require 'alongside-diagnostics)
(require 'cl-lib)
(require 'ert)
(require 'flymake)

(defvar flycheck-current-errors)
(defvar flycheck-mode)

(defmacro alongside-tests--diagnosing (sent &rest body)
  "Run BODY in a buffer with a file; SENT has what is reported, the latest first."
  (declare (indent 1))
  `(let (,sent)
     (cl-letf (((symbol-function 'alongside-bridge-notify)
                (lambda (&rest message) (push message ,sent))))
       (with-temp-buffer
         (insert "one\nü𝄞two\n")
         (setq alongside-context--path "/tmp/a.txt")
         (unwind-protect
             (progn (alongside-diagnostics-start) ,@body)
           (alongside-diagnostics-stop)
           (alongside-context-stop))))))

(defun alongside-tests--settle ()
  "Wait until everything is reported."
  (with-timeout (5 (ert-fail "not everything was reported"))
    (while (not (alongside-context-reported-p))
      (accept-process-output nil 0.01))))

(ert-deftest alongside-diagnostics-of-flymake-are-reported-and-cleared ()
  (alongside-tests--diagnosing sent
    (let* (found
           (backend (lambda (report &rest _) (funcall report found))))
      (setq-local flymake-diagnostic-functions (list backend))
      (setq found (list (flymake-make-diagnostic (current-buffer) 7 10 :warning "wrong")))
      (flymake-mode 1)
      (flymake-start)
      (alongside-tests--settle)
      (should (equal '("context/diagnostics" :path "/tmp/a.txt"
                       :diagnostics [(:start (:line 2 :character 4)
                                      :end (:line 2 :character 7)
                                      :severity "warning" :message "wrong")])
                     (car sent)))
      (should (= 1 (length sent)))
      ;; The same once more.
      (flymake-start)
      (alongside-tests--settle)
      (should (= 1 (length sent)))
      (setq found nil)
      (flymake-start)
      (alongside-tests--settle)
      (should (equal '("context/diagnostics" :path "/tmp/a.txt" :diagnostics [])
                     (car sent))))))

(ert-deftest alongside-diagnostics-of-flycheck-are-reported ()
  (alongside-tests--diagnosing sent
    (cl-letf (((symbol-function 'flycheck-error-line) (lambda (_) 2))
              ((symbol-function 'flycheck-error-column) (lambda (_) 3))
              ((symbol-function 'flycheck-error-end-line) #'ignore)
              ((symbol-function 'flycheck-error-end-column) (lambda (_) 6))
              ((symbol-function 'flycheck-error-level) (lambda (_) 'error))
              ((symbol-function 'flycheck-error-message) (lambda (_) "wrong"))
              ((symbol-function 'flycheck-error-checker) (lambda (_) 'rust-cargo))
              ((symbol-function 'flycheck-error-id) (lambda (_) "E0308")))
      (setq-local flycheck-mode t
                  flycheck-current-errors '(one))
      (run-hooks 'flycheck-after-syntax-check-hook)
      (alongside-tests--settle)
      (should (equal '(("context/diagnostics" :path "/tmp/a.txt"
                        :diagnostics [(:start (:line 2 :character 4)
                                       :end (:line 2 :character 7)
                                       :severity "error" :message "wrong"
                                       :source "rust-cargo" :code "E0308")]))
                     sent)))))

(ert-deftest alongside-diagnostics-go-with-the-buffer ()
  (alongside-tests--diagnosing sent
    (setq alongside-diagnostics--reported '("/tmp/a.txt" . [one]))
    (run-hooks 'kill-buffer-hook)
    (should (equal '(("context/diagnostics" :path "/tmp/a.txt" :diagnostics []))
                   sent))))

(ert-deftest alongside-diagnostics-most-severe-are-reported ()
  (with-temp-buffer
    (cl-letf (((symbol-function 'alongside-diagnostics--flymake)
               (lambda ()
                 (append (make-list 300 '(:severity "warning"))
                         '((:severity "error"))))))
      (let ((found (alongside-diagnostics--of-buffer)))
        (should (= alongside-diagnostics--max (length found)))
        (should (equal '(:severity "error") (aref found 0)))))))

(provide 'diagnostics-tests)
;;; diagnostics-tests.el ends here
