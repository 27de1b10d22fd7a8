@echo off
rem Windows ignores a first line that names an interpreter: start memkit with the installed Python.
rem NoDefaultCurrentDirectoryInExePath: never run a py.exe or python.exe of the current directory.
setlocal
set "NoDefaultCurrentDirectoryInExePath=1"
where /q $PATH:py.exe
if errorlevel 1 (set "memkit_python=python") else (set "memkit_python=py -3")
%memkit_python% -I "%~dp0memkit" %*
