;;; bridge-tests.el --- Messages and their order  -*- lexical-binding: t; -*-

;;; Code:

(require 'alongside-bridge)
(require 'alongside-doctor)
(require 'cl-lib)
(require 'ert)

(defmacro alongside-tests--with-both-parsers (&rest body)
  "Run BODY with the built-in JSON, if there is one, and with that in Lisp."
  `(progn
     ,@body
     (cl-letf (((symbol-function 'json-available-p) #'ignore))
       ,@body)))

(ert-deftest alongside-bridge-messages-are-one-line-of-utf-8 ()
  (alongside-tests--with-both-parsers
   (let* ((text "\ufeffa\r\nü🦀\0\"\\")
          (line (alongside-bridge--encode
                 `(:id 1 :params ,(alongside-bridge--parameters
                                   (list :text text :left-out nil :yes t
                                         :folders ["/a" "/b"]))))))
     (should-not (multibyte-string-p line))
     (should-not (string-search "\n" line))
     (should (equal `(:id 1 :params (:text ,text :yes t :folders ("/a" "/b")))
                    (alongside-bridge--decode (decode-coding-string line 'utf-8-unix)))))
   (should (equal "{\"params\":{}}"
                  (alongside-bridge--encode
                   (list :params (alongside-bridge--parameters nil)))))
   (should (equal '(:a nil :b nil :c nil :d t)
                  (alongside-bridge--decode "{\"a\":null,\"b\":false,\"c\":[],\"d\":true}")))))

(defmacro alongside-tests--hearing (heard &rest body)
  "Run BODY with what notifications said in HEARD, the last one first."
  (declare (indent 1))
  `(let* (,heard
          (alongside-bridge--process 'me)
          (alongside-bridge--pieces nil)
          (alongside-bridge--lines nil)
          (alongside-bridge--handlers
           `(("said" . ,(lambda (parameters) (push (plist-get parameters :word) ,heard)))
             ("again" . ,(lambda (parameters)
                           (alongside-bridge--filter
                            'me "{\"method\":\"said\",\"params\":{\"word\":\"nested\"}}\n")
                           (push (plist-get parameters :word) ,heard)))
             ("wrong" . ,(lambda (_) (error "Something is wrong"))))))
     ,@body))

(ert-deftest alongside-bridge-lines-may-come-in-any-pieces ()
  (let ((all "{\"method\":\"said\",\"params\":{\"word\":\"one\"}}\n\n{\"method\":\"said\",\"params\":{\"word\":\"two\"}}\n"))
    (dotimes (cut (length all))
      (let (words)
        (alongside-tests--hearing heard
          (alongside-bridge--filter 'me (substring all 0 cut))
          (alongside-bridge--filter 'me (substring all cut))
          (setq words heard))
        (should (equal '("two" "one") words))))))

(ert-deftest alongside-bridge-order-stays-and-one-bad-message-is-only-one ()
  (let ((inhibit-message t) words)
    (alongside-tests--hearing heard
      (alongside-bridge--filter
       'me (concat "{\"method\":\"again\",\"params\":{\"word\":\"first\"}}\n"
                   "{\"method\":\"wrong\"}\nno json\n"
                   "{\"method\":\"said\",\"params\":{\"word\":\"last\"}}\n"))
      (setq words heard))
    (should (equal '("first" "last" "nested") (reverse words)))))

(ert-deftest alongside-bridge-variables-come-and-go-and-others-stay ()
  (let ((process-environment (list "OTHER=1" "AN=old")))
    (cl-letf (((default-value 'process-environment) process-environment)
              (alongside-bridge-variables nil))
      (alongside-bridge--set-variables '(("PORT" . "1") ("TOKEN" . "a=b")))
      (should (equal '("TOKEN=a=b" "PORT=1" "OTHER=1" "AN=old")
                     (default-value 'process-environment)))
      (alongside-bridge--set-variables '(("PORT" . "2")))
      (should (equal '("PORT=2" "OTHER=1" "AN=old")
                     (default-value 'process-environment)))
      (alongside-bridge--set-variables nil)
      (should (equal '("OTHER=1" "AN=old") (default-value 'process-environment))))))

(defmacro alongside-tests--with-program (lines words &rest body)
  "Run BODY after a companion that is a script of LINES has made us say WORDS."
  (declare (indent 2))
  `(let* ((script (make-temp-file "alongside" nil nil (concat "#!/bin/sh\n" ,lines "\n")))
          (alongside-command script)
          (inhibit-message t)
          (limit (time-add nil 30)))
     (set-file-modes script #o700)
     (unwind-protect
         (progn
           (alongside-bridge-start)
           (while (not (or (alongside-tests--said-p ,words) (time-less-p limit nil)))
             (accept-process-output nil 0.05))
           (should (alongside-tests--said-p ,words))
           (should-not (alongside-bridge-running-p))
           ,@body)
       (delete-file script))))

(defun alongside-tests--said-p (words)
  "Return non-nil if WORDS were said."
  (with-current-buffer (messages-buffer)
    (string-search words (buffer-string))))

(ert-deftest alongside-bridge-that-keeps-dying-is-left-alone-after-a-while ()
  (let ((count (make-temp-file "alongside")))
    (unwind-protect
        (alongside-tests--with-program
            (format "echo >> %s; echo broken >&2; exit 3" count)
            "keeps ending (code 3)"
          (should (string-search "broken" (alongside-bridge-errors)))
          (should (equal 6 (with-temp-buffer
                             (insert-file-contents count)
                             (count-lines (point-min) (point-max))))))
      (delete-file count))))

(ert-deftest alongside-bridge-that-ends-well-is-left-at-that ()
  (alongside-tests--with-program "exit 0" "the companion was ended"
    (should-not alongside-bridge--restarts)))

(ert-deftest alongside-bridge-that-is-not-installed-is-said-and-no-error ()
  (let ((alongside-command "/nowhere/alongside")
        (inhibit-message t))
    (alongside-bridge-start)
    (should-not (alongside-bridge-running-p))
    (should (alongside-tests--said-p "there is no program"))
    (save-window-excursion
      (alongside-doctor)
      (should (string-search "is not on the path; install alongside" (buffer-string)))
      (kill-buffer))
    (should-error (alongside-bridge-ask "status") :type 'user-error)))

(ert-deftest alongside-bridge-home-is-no-workspace-of-its-own-accord ()
  (let* ((home (file-name-as-directory (make-temp-file "alongside" t)))
         (process-environment (cons (concat "HOME=" home) process-environment))
         (command-line-default-directory home)
         (project (expand-file-name "project/" home)))
    (unwind-protect
        (progn
          (clrhash alongside-bridge--projects)
          (make-directory (expand-file-name ".git" home))
          (make-directory (expand-file-name ".git" project) t)
          ;; There is nothing else.
          (should (equal (list (directory-file-name home)) (alongside-bridge-folders)))
          (with-temp-buffer
            (setq buffer-file-name (expand-file-name "a.txt" project))
            (should (equal (list (directory-file-name project))
                           (alongside-bridge-folders)))
            (let ((alongside-workspace (list home "/ssh:nowhere:/" "/no/such/folder")))
              (should (equal (list (directory-file-name home))
                             (alongside-bridge-folders))))
            (set-buffer-modified-p nil)
            (setq buffer-file-name nil)))
      (delete-directory home t))))

(provide 'bridge-tests)
;;; bridge-tests.el ends here
