;;; bridge-tests.el --- Messages and their order  -*- lexical-binding: t; -*-

;;; Code:

(require 'alongside-bridge)
(require 'alongside-doctor)
(require 'cl-lib)
(require 'ert)

(defmacro alongside-tests--with-both-parsers (&rest body)
  "Run BODY with the built-in JSON parser, if there is one, and with the Lisp one."
  `(progn
     ,@body
     (cl-letf (((symbol-function 'json-available-p) #'ignore))
       ,@body)))

(ert-deftest alongside-bridge-message-is-one-line-of-utf-8 ()
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

(defmacro alongside-tests--receiving (received &rest body)
  "Run BODY with the words of notifications in RECEIVED, the last one first."
  (declare (indent 1))
  `(let* (,received
          (alongside-bridge--process 'me)
          (alongside-bridge--pieces nil)
          (alongside-bridge--lines nil)
          (alongside-bridge--handlers
           `(("word" . ,(lambda (parameters) (push (plist-get parameters :word) ,received)))
             ("again" . ,(lambda (parameters)
                           (alongside-bridge--filter
                            'me "{\"method\":\"word\",\"params\":{\"word\":\"nested\"}}\n")
                           (push (plist-get parameters :word) ,received)))
             ("wrong" . ,(lambda (_) (error "Something is wrong"))))))
     ,@body))

(ert-deftest alongside-bridge-lines-may-arrive-in-any-pieces ()
  (let ((all "{\"method\":\"word\",\"params\":{\"word\":\"one\"}}\n\n{\"method\":\"word\",\"params\":{\"word\":\"two\"}}\n"))
    (dotimes (cut (length all))
      (let (words)
        (alongside-tests--receiving received
          (alongside-bridge--filter 'me (substring all 0 cut))
          (alongside-bridge--filter 'me (substring all cut))
          (setq words received))
        (should (equal '("two" "one") words))))))

(ert-deftest alongside-bridge-error-in-a-message-does-not-affect-the-next ()
  (let ((inhibit-message t) words)
    (alongside-tests--receiving received
      (alongside-bridge--filter
       'me (concat "{\"method\":\"again\",\"params\":{\"word\":\"first\"}}\n"
                   "{\"method\":\"wrong\"}\nno json\n"
                   "{\"method\":\"word\",\"params\":{\"word\":\"last\"}}\n"))
      (setq words received))
    (should (equal '("first" "last" "nested") (reverse words)))))

(ert-deftest alongside-bridge-restart-keeps-what-is-pending-and-exit-does-not ()
  (let (sent)
    (cl-letf (((symbol-function 'alongside-bridge--send)
               (lambda (message) (push (plist-get message :method) sent)))
              ((symbol-function 'alongside-bridge--set-variables) #'ignore)
              ((symbol-function 'process-live-p) #'ignore))
      (let ((alongside-bridge--process 'me))
        (alongside-bridge-stop))
      (should-not sent)
      (let ((alongside-bridge--process 'me))
        ;; What `restart-emacs' does in the end.
        (alongside-bridge--restart #'alongside-bridge-stop))
      (should (equal '("leaving") sent)))))

(ert-deftest alongside-bridge-variables-are-set-and-removed ()
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
  "Run BODY after a companion that is a script of LINES led to the message WORDS."
  (declare (indent 2))
  `(let* ((script (make-temp-file "alongside" nil nil (concat "#!/bin/sh\n" ,lines "\n")))
          (alongside-command script)
          (inhibit-message t)
          (limit (time-add nil 30)))
     (set-file-modes script #o700)
     (unwind-protect
         (progn
           (with-current-buffer (messages-buffer)
             (let ((inhibit-read-only t))
               (erase-buffer)))
           (alongside-bridge-start)
           (while (not (or (alongside-tests--shown-p ,words) (time-less-p limit nil)))
             (accept-process-output nil 0.05))
           (should (alongside-tests--shown-p ,words))
           (should-not (alongside-bridge-running-p))
           ,@body)
       (delete-file script))))

(defun alongside-tests--shown-p (words)
  "Return non-nil if WORDS were shown."
  (with-current-buffer (messages-buffer)
    (string-search words (buffer-string))))

(ert-deftest alongside-bridge-that-keeps-crashing-is-not-restarted ()
  (let ((count (make-temp-file "alongside")))
    (unwind-protect
        (alongside-tests--with-program
            (format "echo >> %s; echo broken >&2; exit 3" count)
            "keeps crashing (exit code 3)"
          (should (string-search "broken" (alongside-bridge-errors)))
          (should (equal 6 (with-temp-buffer
                             (insert-file-contents count)
                             (count-lines (point-min) (point-max))))))
      (delete-file count))))

(ert-deftest alongside-bridge-keeps-only-the-end-of-stderr ()
  (alongside-tests--with-program
      "head -c 100000 /dev/zero | tr '\\0' a >&2; echo the end >&2; exit 0"
      "the companion was stopped"
    (while (and (time-less-p nil limit)
                (not (string-suffix-p "the end" (alongside-bridge-errors))))
      (accept-process-output nil 0.05))
    (should (string-suffix-p "the end" (alongside-bridge-errors)))
    (should (<= (length (alongside-bridge-errors)) alongside-bridge--max-error-chars))
    (should (<= (with-current-buffer " *alongside errors*" (buffer-size))
                alongside-bridge--max-error-chars))))

(ert-deftest alongside-bridge-that-exits-with-0-is-not-restarted ()
  (alongside-tests--with-program "exit 0" "the companion was stopped"
    (should-not alongside-bridge--restarts)))

(ert-deftest alongside-bridge-missing-program-is-a-message ()
  (let ((alongside-command "/nowhere/alongside")
        (inhibit-message t))
    (alongside-bridge-start)
    (should-not (alongside-bridge-running-p))
    (should (alongside-tests--shown-p "cannot find the program"))
    (save-window-excursion
      (alongside-doctor)
      (should (string-search "is not on your PATH; install alongside" (buffer-string)))
      (kill-buffer))
    (should-error (alongside-bridge-ask "status") :type 'user-error)))

;; npm's command starts Node first; the installed plugin does not go through it.
(ert-deftest alongside-bridge-prefers-the-program-that-installed-it ()
  (let* ((directory (file-name-as-directory (make-temp-file "alongside" t)))
         (installer (expand-file-name "real" directory))
         (wrapper (expand-file-name "alongside" directory))
         (exec-path (list directory))
         (alongside-command "alongside"))
    (unwind-protect
        (cl-letf (((symbol-function 'locate-library)
                   (lambda (&rest _) (expand-file-name "alongside-bridge.el" directory))))
          (dolist (program (list installer wrapper))
            (write-region "" nil program nil 'silent)
            (set-file-modes program #o700))
          (write-region (format "{\"program\":%S}" installer) nil
                        (expand-file-name ".alongside-installed.json" directory) nil 'silent)
          (should (equal installer (alongside-bridge-program)))
          (let ((alongside-command wrapper))
            (should (equal wrapper (alongside-bridge-program))))
          (delete-file installer)
          (should (equal wrapper (alongside-bridge-program))))
      (delete-directory directory t))))

(ert-deftest alongside-bridge-home-is-not-a-default-workspace ()
  (let* ((home (file-name-as-directory (make-temp-file "alongside" t)))
         (process-environment (cons (concat "HOME=" home) process-environment))
         (command-line-default-directory home)
         (project (expand-file-name "project/" home)))
    (unwind-protect
        (progn
          (clrhash alongside-bridge--projects)
          (make-directory (expand-file-name ".git" home))
          (make-directory (expand-file-name ".git" project) t)
          (write-region "ref: refs/heads/main\n" nil (expand-file-name ".git/HEAD" project))
          ;; Unless there is nothing else.
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

(ert-deftest alongside-bridge-empty-repository-is-not-a-project ()
  (let ((above (file-name-as-directory (make-temp-file "alongside" t))))
    (unwind-protect
        (let ((below (expand-file-name "below/" above)))
          (clrhash alongside-bridge--projects)
          (make-directory below)
          (make-directory (expand-file-name ".git" above))
          (should-not (alongside-bridge--project-of below))
          (clrhash alongside-bridge--projects)
          (write-region "ref: refs/heads/main\n" nil (expand-file-name ".git/HEAD" above))
          (should (alongside-bridge--project-of below)))
      (delete-directory above t))))

(provide 'bridge-tests)
;;; bridge-tests.el ends here
