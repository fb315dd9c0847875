import{a,b,c,d}from"./chunk-ZLLYLNI4.js";import"./chunk-U3UAG5P3.js";import"./chunk-7JLFRUMJ.js";export{d as css,b as cssCompletionSource,c as cssLanguage,a as defineCSSCompletionSource};
