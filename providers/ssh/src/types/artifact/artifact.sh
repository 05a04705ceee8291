# What is done to a file from a release.

# note_sum PATH SHA256: remembers its sum, so that it need not be read to be known. Only who knows that nothing changes it meanwhile may say so.
note_sum() {
  _stamp=$(stamp "$1")
  if [ -n "$_stamp" ]; then own ssh_artifact "$1" "$_stamp $2"; fi
}

# install_release PATH SHA256 OWNER:GROUP MODE PREVIOUS CHECK [READER]: standard input becomes the file, if it passes the check; what was there
# is kept
install_release() {
  stage_file "$1" "$2" "$3" "$4" "$7" "$6"
  if [ -n "$5" ]; then keep_previous "$1" "$5"; fi
  place_file "$1"
  note_sum "$1" "$2"
}

# permit PATH OWNER:GROUP MODE: of a file that is the right one already
permit() {
  chown "$2" "$1" || fail owner "$1"
  chmod "$3" "$1" || fail write "$1"
  _stamp=$(stamp "$1")
  _sum=$(sha256sum <"$1") || fail write "$1"
  if [ "$_stamp" = "$(stamp "$1")" ]; then note_sum "$1" "${_sum%% *}"; fi
}

# keep_previous PATH DIRECTORY: what is at the path is kept in the directory by its own name, in the place of what was kept before
keep_previous() {
  if [ ! -f "$1" ] || [ -h "$1" ]; then return 0; fi
  _kept=$2/${1##*/}
  make_parents "$_kept"
  own previous "$_kept"
  ln -f "$1" "$_kept" 2>/dev/null || { cp -p "$1" "$_kept.new" && mv -f "$_kept.new" "$_kept"; } || { rm -f "$_kept.new"; fail write "$_kept"; }
}

# owned_of KIND: the identities of what is ours of a kind
owned_of() { sed -n "s/^$1$kf_tab\([^$kf_tab]*\)$kf_tab.*/\1/p" "$kf_owned" 2>/dev/null; }

# drop_previous DIRECTORY: nothing is kept where nothing is left that it could take the place of
drop_previous() {
  case $kf_line$(owned_of ssh_artifact) in *"$kf_line${1%/*}/"*) return 0 ;; esac
  for _name in $(owned_of previous | sed -n "s|^$1/||p" | grep -v /); do drop_kept "$1/$_name"; done
}

# drop_kept PATH: what was kept there goes
drop_kept() {
  is_owned previous "$1" || return 0
  rm -f "$1" || fail write "$1"
  release previous "$1" "$1"
}

# parts NAME...: whether they may come compressed, and how many bytes are here of each
parts() {
  section parts
  if command -v gzip >/dev/null 2>&1; then echo gzip; else echo plain; fi
  for _part do
    if [ -f "$kf_parts/$_part" ]; then stat -c %s "$kf_parts/$_part"; else echo 0; fi
  done
}

# receive NAME HERE WHOLE SHA256: standard input is what is missing of it. What arrived stays for the next try, for a day.
receive() {
  mkdir -p "$kf_parts" && chmod 0700 "$kf_parts" || fail write "$kf_parts"
  find "$kf_parts" -type f -mmin +1440 -exec rm -f {} + 2>/dev/null
  kf_part=$kf_parts/$1
  if [ "$2" = 0 ]; then : >"$kf_part" || fail write "$kf_part"; fi
  [ "$(stat -c %s "$kf_part" 2>/dev/null)" = "$2" ] || fail part
  cat >>"$kf_part" || drop_part write "$kf_part"
  [ "$(stat -c %s "$kf_part")" = "$3" ] || fail part
  _sum=$(sha256sum <"$kf_part") || drop_part write "$kf_part"
  [ "${_sum%% *}" = "$4" ] || drop_part checksum "${_sum%% *}"
}

# drop_part WHY WHAT: gives up on what has arrived
drop_part() {
  rm -f "$kf_part"
  fail "$@"
}

# forget_part: it has all arrived, and whoever has it open reads it to its end. The directory stays for those that arrive beside it.
forget_part() {
  rm -f "$kf_part"
  kf_part=
}
