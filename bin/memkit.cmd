@echo off
rem Windows heeds no first line that names an interpreter: this starts memkit with the Python there is.
rem NoDefaultCurrentDirectoryInExePath: no py.exe or python.exe of the current directory is run.
setlocal
set "NoDefaultCurrentDirectoryInExePath=1"
where /q $PATH:py.exe
if errorlevel 1 (set "memkit_python=python") else (set "memkit_python=py -3")
%memkit_python% -I "%~dp0memkit" %*
