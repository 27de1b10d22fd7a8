@echo off
rem Windows heeds no first line that names an interpreter: this starts memkit with the Python there is.
setlocal
where /q py.exe
if errorlevel 1 (set "memkit_python=python") else (set "memkit_python=py -3")
%memkit_python% "%~dp0memkit" %*
