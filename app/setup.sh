#!/bin/sh
# Installs missing packages with the package manager of the system (pacman also upgrades the
# system), configures a release build in build/ and compiles it. It needs no input and can be run
# again at any time.
#
#   app/setup.sh               install, configure, compile
#   app/setup.sh --test        the same, then run the tests; an error if they cannot be built
#   app/setup.sh --no-install  install no packages
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build
install=yes
test=no

for option in "$@"; do
    case $option in
    --test) test=yes ;;
    --no-install) install=no ;;
    -h | --help)
        sed -n '2,8s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *)
        echo "setup.sh: unknown option '$option' (--test, --no-install)" >&2
        exit 2
        ;;
    esac
done

apt_packages='gcc libc6-dev meson ninja-build pkg-config libreadline-dev libncurses-dev
    libpcre2-dev libjansson-dev libunistring-dev libcmocka-dev python3'
dnf_packages='gcc meson ninja-build pkgconf-pkg-config readline-devel ncurses-devel
    pcre2-devel jansson-devel libunistring-devel libcmocka-devel python3'
pacman_packages='gcc meson ninja pkgconf readline ncurses pcre2 jansson libunistring cmocka python'

have() {
    command -v "$1" >/dev/null 2>&1
}

# Print the packages for which the query command fails. $1: command, others: packages.
missing() {
    query=$1
    shift
    for package in "$@"; do
        $query "$package" >/dev/null 2>&1 || printf '%s ' "$package"
    done
}

apt_has() {
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# Run a shell command as root, without a password prompt.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        sh -c "$1"
    elif have sudo && sudo -n true 2>/dev/null; then
        sudo -n sh -c "$1"
    else
        echo "setup.sh: packages are missing, and installing them needs root. Run this" >&2
        echo "command, then setup.sh again:" >&2
        echo "    sudo sh -c '$1'" >&2
        exit 1
    fi
}

# The package lists must be split into words.
# shellcheck disable=SC2086
install_packages() {
    extra=
    [ "$test" = no ] || extra=tmux
    if have apt-get; then
        wanted=$(missing apt_has $apt_packages $extra)
        [ -z "$wanted" ] || as_root "apt-get -q update && DEBIAN_FRONTEND=noninteractive \
            apt-get -q -y install --no-install-recommends $wanted"
    elif have dnf; then
        wanted=$(missing 'rpm -q' $dnf_packages $extra)
        [ -z "$wanted" ] || as_root "dnf -q -y install $wanted"
    elif have pacman; then
        wanted=$(missing 'pacman -Q' $pacman_packages $extra)
        [ -z "$wanted" ] || as_root "pacman -Syu --noconfirm --needed $wanted"
    else
        echo "setup.sh: found no apt-get, dnf or pacman. Install the packages with these" >&2
        echo "Debian names yourself: $apt_packages" >&2
    fi
}

# A build folder of an interrupted setup is configured again from the start. Meson 1.0 refuses
# --wipe for such a folder. With --test, missing tests are an error: a run of no tests passes.
configure() {
    set -- "$build" "$root"
    [ "$test" = no ] || set -- -Dtests=enabled "$@"
    if [ -f "$build/build.ninja" ]; then
        meson setup --reconfigure "$@"
    else
        rm -rf "$build/meson-private"
        meson setup --buildtype=release "$@"
    fi
}

if [ "$(uname -s)" != Linux ]; then
    echo "setup.sh: bitnet-chat runs on Linux only" >&2
    exit 1
fi
[ "$install" = no ] || install_packages
configure
meson compile -C "$build"
if [ "$test" = yes ]; then
    meson test -C "$build" --print-errorlogs
fi
echo "Ready: $build/app/bitnet-chat"
