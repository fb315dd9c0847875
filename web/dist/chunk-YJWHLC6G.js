import{a,b,c,d}from"./chunk-AWP4V5B4.js";import"./chunk-ICJMJA7K.js";import"./chunk-4ZOU2KGG.js";export{d as css,b as cssCompletionSource,c as cssLanguage,a as defineCSSCompletionSource};
