;;; bridge-tests.el --- Messages and their order  -*- lexical-binding: t; -*-

;;; Code:

(require 'alongside-bridge)
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

(provide 'bridge-tests)
;;; bridge-tests.el ends here
