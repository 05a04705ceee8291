// Search: what has all words stays. Everything else on the page works without this.
(function () {
  'use strict';
  var field = document.getElementById('search'), none = document.getElementById('none');
  function show() {
    var entry = location.hash && document.getElementById(location.hash.slice(1));
    if (entry && entry.tagName === 'DETAILS') entry.open = true;
  }
  window.addEventListener('hashchange', show);
  show();
  if (!field) return;
  var entries, texts;
  field.hidden = false;
  field.addEventListener('input', function () {
    if (!entries) {
      entries = Array.prototype.slice.call(document.querySelectorAll('details.e'));
      texts = entries.map(function (entry) { return entry.textContent.toLowerCase(); });
    }
    var words = field.value.toLowerCase().split(/\s+/).filter(Boolean), found = 0;
    entries.forEach(function (entry, i) {
      entry.hidden = !words.every(function (word) { return texts[i].indexOf(word) >= 0; });
      if (!entry.hidden) found += 1;
    });
    none.hidden = found > 0;
  });
})();
