import{a,b,c,d}from"./chunk-LCQLKR7Y.js";import"./chunk-MHJZWKD6.js";import"./chunk-3EPS46KF.js";export{d as css,b as cssCompletionSource,c as cssLanguage,a as defineCSSCompletionSource};
