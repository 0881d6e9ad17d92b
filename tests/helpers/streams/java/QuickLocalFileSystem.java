import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's local file system without processes: it sets permissions itself.
 *
 * <p>Without Hadoop's native library, the original runs the program `chmod` for each file, six times for each batch of a
 * streaming query.
 */
public class QuickLocalFileSystem extends LocalFileSystem {
    public QuickLocalFileSystem() {
        super(new Raw());
    }

    private static class Raw extends RawLocalFileSystem {
        @Override
        public void setPermission(Path path, FsPermission permission) throws IOException {
            String modes =
                    permission.getUserAction().SYMBOL
                            + permission.getGroupAction().SYMBOL
                            + permission.getOtherAction().SYMBOL;
            Files.setPosixFilePermissions(
                    pathToFile(path).toPath(), PosixFilePermissions.fromString(modes));
        }
    }
}
